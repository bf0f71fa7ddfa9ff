"""
Keys of models: where each is read, and to which hosts it may be sent (docs/decisions/0013).

A model's table is written by owners of workspaces, the environment by who runs the site: an entry
may name a variable and an address, but may not bring another's key to an address of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from runs.providers.endpoints import ENDPOINTS, LITELLM_KEYS

#: Comma list of VARIABLE=HOST: where else a key may go.
KEY_HOSTS = "DEBATEWEB_KEY_HOSTS"
#: Hosts of providers that are reached through LiteLLM.
_LITELLM_HOSTS: dict[str, tuple[str, ...]] = {
    "ANTHROPIC_API_KEY": ("api.anthropic.com",),
    "GEMINI_API_KEY": ("generativelanguage.googleapis.com",),
    "COHERE_API_KEY": ("api.cohere.com", "api.cohere.ai"),
    "AZURE_API_KEY": ("openai.azure.com", "cognitiveservices.azure.com"),
    "AZURE_AI_API_KEY": ("services.ai.azure.com", "models.ai.azure.com"),
}
#: Variables under which the providers' own SDKs look for a key.
PROVIDER_KEYS = frozenset(
    {e.api_key_env for e in ENDPOINTS.values() if e.api_key_env} | set(LITELLM_KEYS.values())
)


def read_key(variable: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """
    Return the key and what is wrong: one of the two is "".

    It is the variable's value, or the content of the file that VARIABLE_FILE names.
    """
    if environ.get(variable, "").strip():
        return environ[variable].strip(), ""
    file = environ.get(f"{variable}_FILE", "")
    if not file:
        return "", f"no key; set {variable} or {variable}_FILE"
    try:
        key = Path(file).read_text(encoding="utf-8").strip()
    except OSError as exc:
        return "", f"no key; {variable}_FILE={file!r} cannot be read: {exc.strerror}"
    except ValueError:  # No UTF-8, or a name that no file can have.
        return "", f"no key; {variable}_FILE={file!r} is no text in UTF-8"
    return key, "" if key else f"no key; {variable}_FILE={file!r} is empty"


def host_refusal(variable: str, base_url: str, environ: Mapping[str, str]) -> str:
    """
    Return why a provider's key may not be sent to an address, or "".

    Under the name that its SDK reads, a key goes to its provider's hosts over https, to the
    address that the environment gives the SDK, and to hosts of DEBATEWEB_KEY_HOSTS. LiteLLM's own
    address ("") is the provider's; keys of other names go where their entry says.
    """
    if variable not in PROVIDER_KEYS or not base_url:
        return ""
    if _is_own(variable, base_url) or _is_override(variable, base_url, environ):
        return ""
    return unlisted(variable, base_url, environ)


def unlisted(variable: str, base_url: str, environ: Mapping[str, str]) -> str:
    """Return "" where DEBATEWEB_KEY_HOSTS lets the key go to that host, else why it may not."""
    host = _host(base_url)
    listed, _ = read_key(KEY_HOSTS, environ)
    if host and f"{variable}={host}".lower() in (
        item.strip().lower() for item in listed.split(",")
    ):
        return ""
    where = host[:80] or "an address without a host"
    return (
        f"the key {variable} is not sent to {where}; who runs the site may allow it with "
        f"{KEY_HOSTS}={variable}={where}"
    )


def _is_own(variable: str, base_url: str) -> bool:
    own = {_host(e.base_url) for e in ENDPOINTS.values() if e.api_key_env == variable}
    own |= set(_LITELLM_HOSTS.get(variable, ()))
    host = _host(base_url)
    is_there = any(host == one or host.endswith(f".{one}") for one in own)
    return is_there and base_url.lower().startswith("https:")


def _is_override(variable: str, base_url: str, environ: Mapping[str, str]) -> bool:
    stem = variable.removesuffix("_API_KEY")
    names = {e.base_url_env for e in ENDPOINTS.values() if e.api_key_env == variable}
    names |= {f"{stem}_API_BASE", f"{stem}_BASE_URL"}
    return base_url in {environ[name] for name in names if environ.get(name)}


def _host(base_url: str) -> str:
    try:
        return (urlsplit(base_url).hostname or "").lower()
    except ValueError:
        return ""
