"""
Who really asks, where a proxy stands between the person and the site.

Only a peer that the site was told to trust may name somebody else. Headers of anybody else are
dropped before anything reads them: a forged one must neither evade the sign-in limit nor make a
plain request look as if it came over TLS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse

from debateweb import env

VARIABLE = "DEBATEWEB_TRUSTED_PROXIES"
FORWARDED = "HTTP_X_FORWARDED_FOR"
SAID_BY_PROXIES = (
    FORWARDED,
    "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_FORWARDED_PORT",
    "HTTP_FORWARDED",
)
Address = IPv4Address | IPv6Address


def trusted_networks() -> tuple[str, ...]:
    """Return DEBATEWEB_TRUSTED_PROXIES: addresses and networks, in their canonical spelling."""
    found = []
    for item in env.env_list(VARIABLE, []):
        try:
            network = ip_network(item)
        except ValueError as exc:
            raise ImproperlyConfigured(f"{VARIABLE}: {exc}") from exc
        if network.prefixlen == 0:
            raise ImproperlyConfigured(f"{VARIABLE}: {item} trusts everybody; name your proxies")
        if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped:
            raise ImproperlyConfigured(f"{VARIABLE}: write {item} as IPv4")
        found.append(str(network))
    return tuple(found)


def client_address(peer: str, forwarded: str, trusted: Iterable[str]) -> str:
    """
    Return the nearest address that no trusted proxy has: each hop appended its own peer.

    Read from the right, because what stands further left the client may have written itself.
    An entry that is no address ends the reading at the proxy that handed it on.
    """
    networks = [ip_network(network) for network in trusted]
    here = _address(peer)
    hops = forwarded.split(",") if forwarded else []
    while here is not None and hops and any(here in network for network in networks):
        further = _address(hops.pop())
        if further is None:
            break
        here = further
    return peer if here is None else str(here)


def is_trusted(peer: str, trusted: Iterable[str]) -> bool:
    address = _address(peer)
    return address is not None and any(address in ip_network(network) for network in trusted)


class ProxyMiddleware:
    """Put the client's address into REMOTE_ADDR. Stands first: all others believe it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        peer = request.META.get("REMOTE_ADDR", "")
        trusted: tuple[str, ...] = settings.TRUSTED_PROXIES
        if is_trusted(peer, trusted):
            said = request.META.get(FORWARDED, "")
            request.META["REMOTE_ADDR"] = client_address(peer, said, trusted)
        else:
            for header in SAID_BY_PROXIES:
                request.META.pop(header, None)
        return self.get_response(request)


def _address(text: str) -> Address | None:
    """Read ``192.0.2.1``, ``2001:db8::1``, either with a port, or IPv4 written as IPv6."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
