"""
What every resource of the API stands on: who asks, what they may see, pages, uploads, errors.

A program sends an API token, a browser its session (then with the CSRF token). What a role may
not see does not exist for it: 404, as for what is not there.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import PurePath
from typing import IO, Annotated, Any, cast

from django.core.cache import cache
from django.http import HttpRequest
from ninja import Path, Query, Schema
from ninja.errors import HttpError
from ninja.security import APIKeyCookie, HttpBearer
from redis.exceptions import RedisError

from debateweb.access import RUNNERS, access_workspace
from debateweb.errors import DebatewebError, InputError
from debateweb.models import Role, User, Workspace
from debateweb.tokens import user_of_token

logger = logging.getLogger(__name__)

READERS = (Role.OWNER, Role.RESEARCHER, Role.READER)
OWNERS = (Role.OWNER,)

REQUESTS_PER_MINUTE = 600
MINUTE_SECONDS = 60
MAX_UPLOAD_BYTES = 256 * 1024**2
MAX_PAGE = 200
MAX_KEY = 2**63 - 1
_SPOOL_BYTES = 1024**2

In = Annotated[str, Path(description="the workspace's name")]
RunKey = Annotated[int, Path(ge=1, le=MAX_KEY)]
PageSize = Annotated[int, Query(ge=1, le=MAX_PAGE, description="rows of one page")]
PageKey = Annotated[
    int | None, Query(ge=0, le=MAX_KEY, description="the `next` of the page before this one")
]


class Fault(Schema):
    """One thing that is wrong. ``line`` counts from 1; null where it is no single line's."""

    line: int | None
    field: str | None
    message: str


class Error(Schema):
    """What every refusal looks like. ``code`` is stable, ``message`` is for people."""

    code: str
    message: str
    where: str | None = None


class Faults(Error):
    """A refused text or file: the first faults, and how many there are."""

    faults: list[Fault] = []
    total: int | None = None


class TooLargeError(DebatewebError):
    """More was sent than is taken."""

    code = "too_large"


class TooManyRequestsError(DebatewebError):
    """One token or person asks more often than the limit allows. Wait and go on."""

    code = "too_many_requests"


#: What any operation may answer instead of its result.
REFUSALS: dict[Any, Any] = {
    frozenset({400, 401, 403, 404, 405, 413, 429, 500}): Error,
    frozenset({409, 422}): Faults,
}


class TokenAuth(HttpBearer):
    """``Authorization: Bearer dw_…``"""

    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        user = user_of_token(token)
        if user is not None:
            count_request(f"token:{hashlib.sha256(token.encode()).hexdigest()}")
        return user


class SessionAuth(APIKeyCookie):
    """The session of a person who is signed in; what changes anything needs the CSRF token."""

    param_name = "sessionid"

    def _get_key(self, request: HttpRequest) -> str | None:
        if not request.user.is_authenticated:
            return None  # 401 says more than a CSRF token that nobody was asked for.
        return super()._get_key(request)

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        if not isinstance(request.user, User):
            return None
        count_request(f"person:{request.user.pk}")
        return request.user


def count_request(who: str) -> None:
    """Count one request. Raises TooManyRequestsError; without the cache nothing is refused."""
    key = f"api:{who}"
    try:
        cache.add(key, 0, MINUTE_SECONDS)
        count = int(cache.incr(key))
    except ValueError:  # It ran out between the two calls.
        return
    except RedisError:
        logger.warning("the API is not rate-limited: the cache does not answer")
        return
    if count > REQUESTS_PER_MINUTE:
        raise TooManyRequestsError(f"more than {REQUESTS_PER_MINUTE} requests in a minute")


def person_of(request: HttpRequest) -> User:
    """Return who asks; the API's authentication has put them there."""
    user = request.auth  # type: ignore[attr-defined]
    if not isinstance(user, User):
        raise HttpError(HTTPStatus.UNAUTHORIZED, "no API token and no session")
    return user


def workspace_to_read(request: HttpRequest, name: str) -> Workspace:
    """Return the workspace if the person may read results there. Raises AccessError."""
    return access_workspace(person_of(request), name, roles=READERS)


def workspace_to_run(request: HttpRequest, name: str) -> Workspace:
    """Return the workspace if the person may change what it holds. Raises AccessError."""
    return access_workspace(person_of(request), name, roles=RUNNERS)


def workspace_to_own(request: HttpRequest, name: str) -> Workspace:
    """Return the workspace if it is the person's. Raises AccessError."""
    return access_workspace(person_of(request), name, roles=OWNERS)


def page(rows: Sequence[Any], limit: int, key: str = "pk") -> dict[str, Any]:
    """Return ``items`` and the ``next`` key from up to ``limit`` + 1 rows."""
    shown = list(rows[:limit])
    more = len(rows) > limit
    return {"items": shown, "next": getattr(shown[-1], key) if more else None}


@contextmanager
def uploaded(request: HttpRequest) -> Iterator[tuple[IO[bytes], str]]:
    """
    Yield what was sent as a stream that can be rewound, and its name.

    It is the part ``file`` of a form, or the whole body. Raises InputError, TooLargeError.
    """
    if (request.content_type or "").startswith("multipart/"):
        part = request.FILES.get("file")
        if part is None or part.file is None:
            raise InputError("file: send the file as the part `file`, or alone as the body")
        if (part.size or 0) > MAX_UPLOAD_BYTES:
            raise _too_large()
        yield cast("IO[bytes]", part.file), PurePath(part.name or "file").name[:100]
        return
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as spool:
        stream = cast("IO[bytes]", spool)
        _copy(request, stream)
        stream.seek(0)
        yield stream, "body"


def _copy(request: HttpRequest, stream: IO[bytes]) -> None:
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdigit() and int(length) > MAX_UPLOAD_BYTES:
        raise _too_large()
    shutil.copyfileobj(cast("Any", request), stream, _SPOOL_BYTES)  # Bounded by its length.


def _too_large() -> TooLargeError:
    return TooLargeError(f"more than {MAX_UPLOAD_BYTES // 1024**2} MB; use the command line")


def body_text(request: HttpRequest) -> str:
    """Return the body as text. Raises InputError where it is not UTF-8."""
    try:
        return request.body.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InputError(f"body: is not UTF-8 at byte {exc.start + 1}") from exc


def text_body(example: str, *types: str) -> dict[str, Any]:
    """Return the OpenAPI description of a body that is one text, YAML or JSON."""
    content = {
        kind: {"schema": {"type": "string", "example": example}}
        for kind in types or ("application/yaml",)
    }
    content["application/json"] = {"schema": {"type": "object"}}
    return {"requestBody": {"required": True, "content": content}}


#: The OpenAPI description of a file that is sent.
FILE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
