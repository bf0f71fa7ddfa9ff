"""Forms of the site itself."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError

from debateweb.models import Role
from debateweb.outside import MOST_URL_CHARS
from debateweb.webhooks import ADJUDICATE, LABEL_SUBMIT

PASSWORD_HELP = "At least 10 characters; a sentence is good."


def new_password(label: str, **extra: Any) -> forms.CharField:
    attributes = {"autocomplete": "new-password"}
    widget = forms.PasswordInput(attrs=attributes)
    return forms.CharField(label=label, strip=False, max_length=256, widget=widget, **extra)


class PasswordForm(forms.Form):
    """A new password, twice. Its strength is judged where it is set."""

    password = new_password("New password", help_text=PASSWORD_HELP)
    again = new_password("The same again")

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if data.get("password") != data.get("again"):
            raise ValidationError("The two passwords differ.")
        return data


class ChangePasswordForm(PasswordForm):
    """A new password for somebody who knows the old one."""

    old_password = forms.CharField(
        label="Present password",
        strip=False,
        max_length=256,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    field_order = ["old_password", "password", "again"]


class JoinForm(PasswordForm):
    """An account for an invited person."""

    username = forms.CharField(
        label="Username",
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        help_text="Letters, digits and @ . + - _. Others in the workspace see it.",
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    field_order = ["username", "password", "again"]


class WorkspaceForm(forms.Form):
    """The name of a workspace."""

    name = forms.SlugField(
        label="Name of the workspace",
        max_length=64,
        help_text="Letters, digits, hyphens and underscores. It stands in every address.",
    )


class InvitationForm(forms.Form):
    """Whom to invite as what."""

    role = forms.ChoiceField(
        label="Role",
        choices=Role.choices,
        initial=Role.READER.value,
        help_text="Owners manage members; researchers run; annotators label; readers read.",
    )
    note = forms.CharField(
        label="For whom",
        max_length=200,
        required=False,
        help_text="A reminder for you. The invited person does not see it.",
    )


class RoleForm(forms.Form):
    """Another role for a member."""

    role = forms.ChoiceField(label="Role", choices=Role.choices)


class TokenForm(forms.Form):
    """The name of an API token."""

    name = forms.CharField(
        label="Name of the token",
        max_length=80,
        help_text="Say which program uses it, so that you know what to revoke.",
    )


class WebhookForm(forms.Form):
    """An address, and what it is told of."""

    url = forms.CharField(
        label="Address",
        max_length=MOST_URL_CHARS,
        help_text="https:// on the open internet. It gets a signed POST for each event.",
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off"}),
    )
    events = forms.MultipleChoiceField(
        label="Told of",
        choices=[(LABEL_SUBMIT, "Submitted labels"), (ADJUDICATE, "Decisions of the lead")],
        initial=[LABEL_SUBMIT, ADJUDICATE],
        widget=forms.CheckboxSelectMultiple,
    )
