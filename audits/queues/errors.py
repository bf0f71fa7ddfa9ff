"""What can be in the way of a person who labels. Each says what was kept and what to do."""

from __future__ import annotations

from debateweb.errors import InputError, StateError


class LeaseLostError(StateError):
    """The item went to somebody else, or was given back; what was typed is kept as a draft."""

    code = "lease_lost"


class AlreadySubmittedError(StateError):
    """This person has labelled the item; a change is a correction."""

    code = "already_submitted"


class QueueNotOpenError(StateError):
    """The queue is paused or closed."""

    code = "queue_not_open"


class NotCorrectableError(StateError):
    """There is no label of this person to change, or it is no longer theirs to change."""

    code = "not_correctable"


class LabelError(InputError):
    """The label does not fit what was asked."""

    code = "label_not_valid"


class QueueDesignError(InputError):
    """The queue cannot be made like this."""

    code = "queue_not_valid"
