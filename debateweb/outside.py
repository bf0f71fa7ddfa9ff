"""
Posting to an address that somebody in the browser named, without lending them our network.

The name is resolved once, every address that it has must be a public one, and the connection
goes to an address that was checked: a second answer of the name server changes nothing. No
redirect is followed, nothing of an answer but its status is kept, and the whole takes a limited
time. What who runs the site lists in ``DEBATEWEB_WEBHOOK_HOSTS`` may be private and plain HTTP.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Timer
from urllib.parse import SplitResult, urlsplit

from debateweb.errors import InputError

MOST_URL_CHARS = 500
STEP_SECONDS = 10.0
WHOLE_SECONDS = 20.0
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class OutsideError(InputError):
    """The address is none that we post to, or nobody answered there."""

    code = "address_refused"


@dataclass(frozen=True, slots=True)
class Target:
    """Where to post: the parts of a URL that was checked."""

    is_tls: bool
    host: str
    port: int
    path: str
    may_be_private: bool


def target_of(url: str, private_hosts: Sequence[str]) -> Target:
    """Return where a URL leads. Raises OutsideError for one that we never post to."""
    if len(url) > MOST_URL_CHARS or not url.isascii() or not url.isprintable() or " " in url:
        raise OutsideError("url: at most 500 characters, plain ASCII without spaces")
    try:
        parts = urlsplit(url)
        port, host = parts.port, (parts.hostname or "").lower()
    except ValueError as exc:
        raise OutsideError("url: this is no address") from exc
    may_be_private = host in {name.lower() for name in private_hosts}
    _check_parts(parts, host, may_be_private)
    is_tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(is_tls, host, port or (443 if is_tls else 80), path, may_be_private)


def _check_parts(parts: SplitResult, host: str, may_be_private: bool) -> None:
    if not host or parts.scheme not in {"https", "http"}:
        raise OutsideError("url: has to begin with https:// and name a host")
    if parts.scheme == "http" and not may_be_private:
        raise OutsideError("url: has to begin with https://")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise OutsideError("url: without a user, a password and a fragment")


def is_public(address: Address) -> bool:
    """Return whether an address is one of the open internet, also behind IPv6's wrappings."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if address.teredo is not None:
            return False
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast


def addresses_of(target: Target) -> list[str]:
    """
    Return the addresses of the target's host, all of them checked.

    Raises OutsideError where there is none, or where any one of them is private.
    """
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise OutsideError("the host has no address") from exc
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        if not target.may_be_private and not is_public(
            ipaddress.ip_address(address.partition("%")[0])
        ):
            raise OutsideError("the host is not on the open internet")
    return addresses


def post(target: Target, body: bytes, headers: Mapping[str, str]) -> int:
    """Post ``body`` and return the answer's status. Raises OutsideError where none came."""
    address = addresses_of(target)[0]
    connection = _connection(target, address)
    # A peer that sends a byte now and then would hold the thread for hours.
    watch = Timer(WHOLE_SECONDS, _cut, [connection])
    watch.daemon = True
    watch.start()
    try:
        connection.request("POST", target.path, body, dict(headers))
        return connection.getresponse().status
    except ssl.SSLError as exc:
        raise OutsideError("its certificate is not valid") from exc
    except TimeoutError as exc:
        raise OutsideError("no answer in time") from exc
    except (OSError, http.client.HTTPException, ValueError) as exc:
        raise OutsideError(f"no answer ({type(exc).__name__})") from exc
    finally:
        watch.cancel()
        connection.close()


def _cut(connection: http.client.HTTPConnection) -> None:
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


class _ToAddress(http.client.HTTPConnection):
    """Connects to an address that was checked, whatever the name resolves to by now."""

    address = ""
    tls: ssl.SSLContext | None = None

    def connect(self) -> None:
        plain = socket.create_connection((self.address, self.port), timeout=STEP_SECONDS)
        self.sock = (
            plain if self.tls is None else self.tls.wrap_socket(plain, server_hostname=self.host)
        )


def _connection(target: Target, address: str) -> http.client.HTTPConnection:
    connection = _ToAddress(target.host, target.port)
    connection.default_port = 443 if target.is_tls else 80  # What the Host header leaves out.
    connection.address = address
    connection.tls = ssl.create_default_context() if target.is_tls else None
    return connection
