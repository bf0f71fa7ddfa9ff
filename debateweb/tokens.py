"""API tokens: shown once, stored as a hash, revocable, with their last use."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from debateweb.access import token_hash
from debateweb.audit import record
from debateweb.errors import StateError
from debateweb.models import ApiToken, User

PREFIX = "dw_"
#: The last use is written at most this often: a busy program is not to write a row a request.
LAST_USE_STEP = timedelta(minutes=1)
MOST_TOKENS = 50


class TooManyTokensError(StateError):
    """A person has as many tokens as the page lists. Revoke one first."""

    code = "too_many_tokens"


@transaction.atomic
def create_token(*, user: User, name: str) -> str:
    """Store a new token's hash and return the token. Raises TooManyTokensError."""
    if ApiToken.objects.filter(user=user, revoked_at=None).count() >= MOST_TOKENS:
        raise TooManyTokensError(f"there are {MOST_TOKENS} tokens already; revoke one first")
    token = PREFIX + secrets.token_urlsafe(32)
    row = ApiToken.objects.create(user=user, name=name, token_sha256=token_hash(token))
    record(act="token.create", workspace=None, obj=row, actor=user)
    return token


@transaction.atomic
def revoke_token(*, user: User, token_id: int) -> None:
    """Make the user's token useless. Raises ApiToken.DoesNotExist for anybody else's."""
    row = ApiToken.objects.get(pk=token_id, user=user)
    if ApiToken.objects.filter(pk=row.pk, revoked_at=None).update(revoked_at=Now()) == 1:
        record(act="token.revoke", workspace=None, obj=row, actor=user)


def user_of_token(token: str) -> User | None:
    """Return the active person that ``token`` acts for, or None; note the use."""
    row = (
        ApiToken.objects.filter(
            token_sha256=token_hash(token), revoked_at=None, user__is_active=True
        )
        .select_related("user")
        .first()
    )
    if row is None:
        return None
    is_due = Q(last_used_at=None) | Q(last_used_at__lt=Now() - LAST_USE_STEP)
    ApiToken.objects.filter(is_due, pk=row.pk).update(last_used_at=Now())
    return row.user
