"""What can be wrong with the name or the configuration of a model."""

from __future__ import annotations


class ModelSpecError(ValueError):
    """A model's specification can't be used; the message is one line that says why."""

    code = "bad_model"


class UnknownModelError(ModelSpecError):
    """No table and no well-known prefix has this name."""

    code = "unknown_model"
