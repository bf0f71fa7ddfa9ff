"""
Which model stands behind a slot or an agent of an arm, as it is stored with the arm.

A binding is a model's whole configuration, price included, so that what ran can be told later
whatever the model table says by then. It never holds a key: keys are read when a call is made.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from runs.engine.ledger import Price
from runs.providers.catalog import ModelConfig


def to_json(config: ModelConfig) -> dict[str, Any]:
    """Return a model's configuration as plain JSON."""
    return asdict(config)


def from_json(body: dict[str, Any]) -> ModelConfig:
    """Return the configuration that ``to_json`` wrote; other keys of the binding are left out."""
    price = body["price"]
    known = {name: body[name] for name in ModelConfig.__dataclass_fields__ if name in body}
    return ModelConfig(**{**known, "price": Price(**price) if price is not None else None})
