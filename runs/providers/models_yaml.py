"""The model table as a file: ``models.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runs.engine.ledger import Price
from runs.protocols.yaml12 import Document, FileFaultError, load
from runs.providers.catalog import PATHS, ModelConfig, base_url_faults, resolve
from runs.providers.errors import UnknownModelError

_TEXT = ("base_url", "upstream_name", "api_key_env")
_COUNTS = ("context_tokens", "max_concurrency", "requests_per_minute", "tokens_per_minute")
_FLAGS = ("json_schema", "supports_seed")
_PRICE = (
    "input_microusd_per_mtok",
    "cached_input_microusd_per_mtok",
    "output_microusd_per_mtok",
)
_FIELDS = ("path", *_TEXT, *_COUNTS, *_FLAGS, "price", "free")
_FILE_PATHS = tuple(path for path in PATHS if path in {"openai_compatible", "litellm"})
_MAX_COUNT = 10**9


def load_models_yaml(
    text: str, where: str = "models.yaml", environ: Mapping[str, str] | None = None
) -> dict[str, ModelConfig]:
    """
    Return the models of a file whose one key ``models`` maps names to their fields.

    What an entry leaves out is as for its ``upstream_name`` (or its own name) without a table.
    Raises FileFaultError with lines ``WHERE:LINE: field: what``, at most 20.
    """
    document = load(text, where)
    data = {} if document.data is None else document.data
    if not isinstance(data, dict) or not isinstance(data.get("models", {}), dict):
        raise FileFaultError([document.fault((), "expected `models:` with one entry a name")])
    faults = [
        document.fault((key,), "unknown key; there is `models`") for key in data if key != "models"
    ]
    models: dict[str, ModelConfig] = {}
    for name, fields in (data.get("models") or {}).items():
        entry = _Entry(document, name, fields)
        config = entry.config(environ or {})
        faults += entry.faults
        if config is not None:
            models[name] = config
    if faults:
        raise FileFaultError(faults)
    return models


class _Entry:
    """One model of the file and what is wrong with it."""

    def __init__(self, document: Document, name: str, fields: object) -> None:
        self.document = document
        self.name = name
        self.faults: list[str] = []
        self.fields: dict[str, Any] = {}
        if isinstance(fields, dict):
            self.fields = fields
        else:
            self.fault("expected fields such as base_url and price")

    def fault(self, what: str, *steps: str) -> None:
        self.faults.append(self.document.fault(("models", self.name, *steps), what))

    def config(self, environ: Mapping[str, str]) -> ModelConfig | None:
        """Return the model, or None where there are faults."""
        if self.name.startswith(("simulated:", "recorded:")):
            self.fault("this name is taken: simulated and recorded models need no entry")
        for key in self.fields:
            if key not in _FIELDS:
                self.fault(f"unknown field; there are {', '.join(_FIELDS)}", key)
        changes = {
            **self._checked(_TEXT, _is_text, "expected text"),
            **self._checked(_COUNTS, _is_count, f"expected a whole number from 1 to {_MAX_COUNT}"),
            **self._checked(_FLAGS, _is_flag, "expected true or false"),
            **self._checked(("path",), _is_path, f"expected one of {', '.join(_FILE_PATHS)}"),
            **self._price(),
        }
        for what in base_url_faults(changes["base_url"]) if changes.get("base_url") else ():
            self.fault(what, "base_url")
        if self.faults:
            return None
        return self._completed(changes, environ)

    def _checked(self, keys: tuple[str, ...], holds: Any, expected: str) -> dict[str, Any]:
        given = {key: self.fields[key] for key in keys if key in self.fields}
        for key, value in given.items():
            if not holds(value):
                self.fault(expected, key)
        return {key: value for key, value in given.items() if holds(value)}

    def _price(self) -> dict[str, Price]:
        free, price = self.fields.get("free", False), self.fields.get("price")
        if not isinstance(free, bool):
            self.fault("expected true or false", "free")
        elif free and price is not None:
            self.fault("a free model has no price", "price")
        elif free:
            return {"price": Price.free()}
        if price is None:
            return {}
        parts = self._price_parts(price)
        return {"price": Price(*parts)} if parts else {}

    def _price_parts(self, price: object) -> tuple[int, int, int] | None:
        if not isinstance(price, dict):
            self.fault(f"expected {', '.join(_PRICE)}", "price")
            return None
        before = len(self.faults)
        for key in price:
            if key not in _PRICE:
                self.fault(f"unknown field; there are {', '.join(_PRICE)}", "price", key)
        paid_in = price.get(_PRICE[0])
        parts: tuple[Any, Any, Any] = (paid_in, price.get(_PRICE[1], paid_in), price.get(_PRICE[2]))
        for key, value in zip(_PRICE, parts, strict=True):
            if not _is_amount(value):
                self.fault("expected a whole number of micro-USD per million tokens", "price", key)
        if len(self.faults) > before:
            return None
        return parts

    def _completed(self, changes: dict[str, Any], environ: Mapping[str, str]) -> ModelConfig | None:
        elsewhere = "base_url" in changes
        if elsewhere:
            changes.setdefault("path", "openai_compatible")
            # Another address is another account: the usual key must not go there unasked.
            changes |= {"api_key_env": changes.get("api_key_env", "")}
            changes |= {"price": changes.get("price")}
        known = self._known(changes, environ)
        if known is not None:
            # Behind its own address a model goes by the name that is given.
            if not elsewhere:
                changes["upstream_name"] = known.upstream_name
            return replace(known, name=self.name, **changes)
        if "path" not in changes:
            self.fault("unknown model: give its base_url or its path")
            return None
        changes.setdefault("upstream_name", self.name)
        return ModelConfig(name=self.name, **changes)

    def _known(self, changes: Mapping[str, Any], environ: Mapping[str, str]) -> ModelConfig | None:
        """Return what the name means without a table, unless the entry says all itself."""
        if "base_url" in changes and "upstream_name" in changes:
            return None
        try:
            known = resolve(changes.get("upstream_name") or self.name, {}, environ)
        except UnknownModelError:
            return None
        return known if changes.get("path", known.path) == known.path else None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and len(value) <= 500


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_COUNT


def _is_amount(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_path(value: object) -> bool:
    return value in _FILE_PATHS
