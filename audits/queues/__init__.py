"""Writes of queues, one transaction each: made, claimed, typed, submitted, closed, decided."""
