"""Judges as runs: their design, protocol, items, and what they said (decision 0071)."""
