"""Forms of the site itself."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError


class PasswordForm(forms.Form):
    """A new password, twice. Its strength is judged where it is set."""

    password = forms.CharField(
        label="New password",
        strip=False,
        max_length=256,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "autofocus": True}),
    )
    again = forms.CharField(
        label="The same again",
        strip=False,
        max_length=256,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if data.get("password") != data.get("again"):
            raise ValidationError("The two passwords differ.")
        return data
