"""Errors that a person can act on: one line, a stable code, no traceback."""

from __future__ import annotations


class DebatewebError(Exception):
    """Something cannot be done. The message is one line that says what, where and what to do."""

    code = "error"

    @property
    def message(self) -> str:
        return str(self)


class InputError(DebatewebError):
    """What was handed in (a file, an option, a value) is wrong."""

    code = "bad_input"


class StateError(DebatewebError):
    """The thing named is not in a state that allows this."""

    code = "bad_state"


class NegativeAnswer(DebatewebError):  # An answer, not a fault: exit code 1.
    """The command finished and its answer is no (for instance: two files differ)."""

    code = "negative_answer"
