"""How often somebody may try a password from one address."""

from __future__ import annotations

import contextlib
import hashlib
import logging

from django.core.cache import cache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 15 * 60
TRIES_PER_ACCOUNT_AND_ADDRESS = 8
TRIES_PER_ADDRESS = 100


def may_try(*, account: str, address: str) -> bool:
    """
    Count one try and tell whether it may go on.

    Without the cache every try may go on: who holds the right password is not to be locked out
    by a broker that is away. That is logged.
    """
    try:
        by_account = _count(_key(account, address))
        by_address = _count(_key("", address))
    except RedisError:
        logger.warning("sign-in is not rate-limited: the cache does not answer")
        return True
    return by_account <= TRIES_PER_ACCOUNT_AND_ADDRESS and by_address <= TRIES_PER_ADDRESS


def forget(*, account: str, address: str) -> None:
    """Start counting anew after a right password: a whole class may share one address."""
    try:
        cache.delete(_key(account, address))
        with contextlib.suppress(ValueError):  # It ran out meanwhile.
            cache.decr(_key("", address))
    except RedisError:
        logger.warning("the cache does not answer")


def _count(key: str) -> int:
    cache.add(key, 0, WINDOW_SECONDS)
    try:
        return int(cache.incr(key))
    except ValueError:  # It ran out between the two calls.
        return 1


def _key(account: str, address: str) -> str:
    digest = hashlib.sha256(f"{account.casefold()}\0{address}".encode("utf-8", "replace"))
    return f"sign-in:{digest.hexdigest()}"
