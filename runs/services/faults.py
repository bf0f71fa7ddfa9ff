"""Faults of a specification that only the database, the environment or other files can show."""

from __future__ import annotations

from collections.abc import Iterable

from debateweb.errors import InputError


class DesignError(InputError):
    """
    The experiment cannot be made; nothing was written.

    ``faults`` are lines ``field.path: what is wrong``, one for each.
    """

    code = "experiment_design"

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(dict.fromkeys(faults))
        super().__init__("\n".join(self.faults))
