"""
Which model is behind a name: the path to it, its address, its price and its limits.

A name is looked up in the workspace's table, then among well-known prefixes whose providers
speak the OpenAI protocol (the thin path), then among all that LiteLLM knows. Nothing here makes
a call or reads the process's environment: what is needed is handed in.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from runs.engine.hashing import digest
from runs.engine.ledger import Price
from runs.providers import litellm_prices, recorded, simulated
from runs.providers.base import ProviderRequest
from runs.providers.endpoints import ENDPOINTS, LITELLM_KEYS, Endpoint
from runs.providers.errors import ModelSpecError, UnknownModelError
from runs.providers.keys import host_refusal, read_key

PathName = Literal["openai_compatible", "litellm", "simulated", "recorded"]
PATHS: tuple[PathName, ...] = get_args(PathName)

#: Calls at once to a model for which nobody said otherwise.
DEFAULT_CONCURRENCY = 64

#: ``simulated`` and ``recorded`` cost nothing and have no limits of their own.
_UNLIMITED_CONCURRENCY = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """
    One model as this workspace calls it.

    ``api_key_env`` is the name of the variable that holds the key, "" where none is needed or
    LiteLLM finds its own credentials. ``price`` is None while nobody has said it.
    """

    name: str
    path: PathName
    base_url: str = ""
    upstream_name: str = ""
    api_key_env: str = ""
    price: Price | None = None
    context_tokens: int | None = None
    max_concurrency: int = DEFAULT_CONCURRENCY
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    json_schema: bool = False
    supports_seed: bool = False

    @property
    def marked(self) -> str:
        """Return "simulated" or "recorded" where no model answers, else ""."""
        return self.path if self.path in {"simulated", "recorded"} else ""


def resolve(
    name: str, table: Mapping[str, ModelConfig], environ: Mapping[str, str] | None = None
) -> ModelConfig:
    """
    Return the model behind ``name``.

    ``environ`` may override base URLs under the names that the SDKs use (OPENAI_BASE_URL).
    Raises UnknownModelError, or ModelSpecError for a bad ``simulated:`` specification.
    """
    if name in table:
        return table[name]
    if name.startswith(simulated.PREFIX):
        simulated.parse_spec(name)
        return _marked(name, "simulated", name)
    if name.startswith(recorded.PREFIX):
        return _marked(name, "recorded", name.removeprefix(recorded.PREFIX))
    prefix, _, upstream = name.partition("/")
    if upstream and prefix in ENDPOINTS:
        return _behind_endpoint(name, upstream, ENDPOINTS[prefix], environ or {})
    return _known_to_litellm(name, environ or {})


def _marked(name: str, path: PathName, upstream: str) -> ModelConfig:
    if not upstream:
        raise ModelSpecError(f"{name!r} names no recorded set")
    return ModelConfig(
        name=name,
        path=path,
        upstream_name=upstream,
        price=Price.free(),
        max_concurrency=_UNLIMITED_CONCURRENCY,
    )


def _behind_endpoint(
    name: str, upstream: str, endpoint: Endpoint, environ: Mapping[str, str]
) -> ModelConfig:
    # What runs on one's own machine is free only where the table says so.
    listed = None if endpoint.local else litellm_prices.find(endpoint.listed_as(upstream))
    if listed is not None and listed.mode == "responses":
        return _known_to_litellm(name, environ)
    return ModelConfig(
        name=name,
        path="openai_compatible",
        base_url=environ.get(endpoint.base_url_env, "") or endpoint.base_url,
        upstream_name=upstream,
        api_key_env=endpoint.api_key_env,
        price=listed.price if listed else None,
        context_tokens=listed.context_tokens if listed else None,
        json_schema=endpoint.json_schema and (listed is None or listed.json_schema),
        supports_seed=endpoint.supports_seed,
    )


def _known_to_litellm(name: str, environ: Mapping[str, str]) -> ModelConfig:
    listed = litellm_prices.find([name])
    provider = listed.provider if listed else name.partition("/")[0]
    if listed is None and ("/" not in name or provider not in litellm_prices.providers()):
        raise UnknownModelError(f"unknown model {name[:80]!r}{_suggestion(name)}")
    if provider == "openai" and "/" not in name and listed and listed.mode == "chat":
        return _behind_endpoint(name, name, ENDPOINTS["openai"], environ)
    return ModelConfig(
        name=name,
        path="litellm",
        upstream_name=name,
        api_key_env=LITELLM_KEYS.get(provider, ""),
        price=listed.price if listed else None,
        context_tokens=listed.context_tokens if listed else None,
        json_schema=listed.json_schema if listed else False,
    )


def _suggestion(name: str) -> str:
    near = difflib.get_close_matches(name[:80], litellm_prices.names(), n=1, cutoff=0.7)
    return f"; did you mean {near[0]!r}?" if near else ""


def missing(config: ModelConfig, environ: Mapping[str, str]) -> list[str]:
    """Return one line for each thing without which no call to this model may start."""
    lines = []
    if config.price is None:
        lines.append(
            f"model {config.name}: no price is known; give one in the model table or models.yaml"
            " (a free model says `free: true`)"
        )
    if config.api_key_env:
        refused = host_refusal(config.api_key_env, config.base_url, environ)
        what = refused or read_key(config.api_key_env, environ)[1]
        lines += [f"model {config.name}: {what}"] if what else []
    if config.path == "openai_compatible":
        lines += [f"model {config.name}: {what}" for what in base_url_faults(config.base_url)]
    return lines


def base_url_faults(base_url: str) -> list[str]:
    """Return what is wrong with a base URL, one line each."""
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not base_url.isprintable() or " " in base_url:
        return [f"base_url {base_url[:80]!r} is no http or https address"]
    if parts.username or parts.password:
        return ["base_url holds a user or a password; give keys through api_key_env"]
    return []


def api_key(config: ModelConfig, environ: Mapping[str, str]) -> str:
    """Return the model's key, or "" where there is none or it may not go to the model's address."""
    name = config.api_key_env
    if not name or host_refusal(name, config.base_url, environ):
        return ""
    return read_key(name, environ)[0]


def adapted(request: ProviderRequest, config: ModelConfig) -> ProviderRequest:
    """Return the request as this model can take it: its own name, only what it supports."""
    changes: dict[str, Any] = {}
    if request.model != config.upstream_name:
        changes["model"] = config.upstream_name
    if request.response_schema is not None and not config.json_schema:
        changes["response_schema"] = None
    if request.seed is not None and not config.supports_seed and not config.marked:
        changes["seed"] = None
    return replace(request, **changes) if changes else request


def price_table_version(configs: Iterable[ModelConfig]) -> str:
    """Return the hash that identifies the prices used: names and the three integers of each."""
    rows = {c.name: _price_row(c.price) for c in configs}
    return digest({"price_table": rows})


def _price_row(price: Price | None) -> list[int] | None:
    if price is None:
        return None
    return [
        price.input_microusd_per_mtok,
        price.cached_input_microusd_per_mtok,
        price.output_microusd_per_mtok,
    ]
