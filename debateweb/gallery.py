"""What the page of the design system shows: one example of every component and state."""

from __future__ import annotations

from typing import Any

from django import forms

from debateweb.context import Link
from debateweb.paging import Page

#: Replies that try to act on the page that shows them.
HOSTILE = (
    "<img src=x onerror=alert(1)> <iframe srcdoc='<script>alert(1)</script>'></iframe>\n"
    "<div hx-get=/logout/ hx-trigger=load>x</div> [link](javascript:alert(1))\n"
    "\u202edrawkcab\u202c \x1b[31mred\x1b[0m nul:\x00 " + "long" * 60
)


class ExampleForm(forms.Form):
    """Fields of every kind, one of them wrong."""

    name = forms.CharField(label="Name", help_text="Others see it.", max_length=5)
    rounds = forms.IntegerField(label="Rounds", min_value=0, max_value=9, initial=2)
    topology = forms.ChoiceField(
        label="Topology", choices=[("complete", "Everybody reads everybody"), ("ring", "Ring")]
    )
    notes = forms.CharField(label="Notes", required=False, widget=forms.Textarea(attrs={"rows": 3}))
    staged = forms.BooleanField(label="Ask after a pilot stage", required=False)
    order = forms.ChoiceField(
        label="Order",
        choices=[("all", "All at once"), ("one", "One after another")],
        widget=forms.RadioSelect,
        help_text="Who has read whose answer before answering.",
    )


def examples() -> dict[str, Any]:
    wrong = ExampleForm(
        {"name": "too long a name", "rounds": "10", "topology": "ring", "notes": "kept"}
    )
    return {
        "form": ExampleForm(),
        "wrong": wrong,
        "badges": ["done", "failed", "unknown", "running", "pending", "stalled", "paused", "other"],
        "tabs": [Link("Overview", "#", is_current=True), Link("Runs", "#"), Link("Ledger", "#")],
        "middle_page": Page(rows=[], next_url="#", first_url="#"),
        "last_page": Page(rows=[], next_url=None, first_url="#"),
        "hostile": HOSTILE,
        "old": "The farmer sells 12 eggs, so she earns 24 dollars.",
        "new": "The farmer sells 9 eggs, so she earns 18 dollars a day.",
        "rows": [("gsm8k-17", "DONE", 18, 0.25, 1250), ("gsm8k-18", "RUNNING", None, None, 310)],
    }
