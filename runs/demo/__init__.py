"""
What `demo` brings: our own questions, one experiment ready to start and one log to audit.

Every reply in them is simulated and says so.
"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent

QUESTIONS_FILE = _HERE / "questions.jsonl"
EXPERIMENT_FILE = _HERE / "experiment.yaml"
LOG_FILE = _HERE / "log.jsonl"

#: Names under which they are imported; the experiment file asks for the first.
QUESTIONS_NAME = "demo-questions"
LOG_NAME = "demo-log"
