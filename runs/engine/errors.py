"""Errors of the engine. Each has a stable ``code`` that the shell and the API repeat."""

from __future__ import annotations

from collections.abc import Sequence


class EngineError(Exception):
    """Something that the engine refuses to compute."""

    code = "engine_error"


class UnsupportedProtocolError(EngineError):
    """The protocol asks for a rule that this engine does not carry out."""

    code = "unsupported_protocol"

    def __init__(self, features: Sequence[str]) -> None:
        self.features = tuple(features)
        super().__init__("this engine does not run: " + "; ".join(self.features))


class InconsistentInputError(EngineError):
    """Values that cannot belong to one round were handed in together."""

    code = "inconsistent_input"
