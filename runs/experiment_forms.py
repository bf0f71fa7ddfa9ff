"""
The experiment file as a form and back: every input is named by its path in the file.

So a fault's path (``arms[0].models.default``) says which input it stands beside, and form, YAML
and faults speak of the same things. The form judges nothing: what it holds becomes a document,
and ``runs.experiment_file`` judges that, as it judges a file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, TypeVar

from django import forms
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq

from runs.experiment_file import MAX_ARMS
from runs.metric_names import METRICS

Document = dict[str, Any]

_FAULT = re.compile(r"(?:[^:\n]*:\d+: )?(?P<path>[a-z_]+[^\s:]*): (?P<what>.+)", re.DOTALL)
_WHOLE = re.compile(r"[0-9]{1,18}")
_REAL = re.compile(r"[0-9]*\.?[0-9]+([eE][-+]?[0-9]{1,2})?")
MICROUSD = 1_000_000


def _text(label: str, help_text: str = "", **attributes: str) -> forms.CharField:
    widget = forms.TextInput(attrs={"autocomplete": "off", **attributes})
    return forms.CharField(label=label, required=False, help_text=help_text, widget=widget)


def _number(label: str, help_text: str = "") -> forms.CharField:
    return _text(label, help_text, inputmode="decimal")


def _lines(label: str, help_text: str = "", rows: str = "3") -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": rows, "class": "mono", "spellcheck": "false"})
    return forms.CharField(label=label, required=False, help_text=help_text, widget=widget)


def _choice(label: str, choices: Sequence[tuple[str, str]], help_text: str = "") -> forms.CharField:
    """A list to choose from that keeps what is not in it: the file's rules refuse it in words."""
    return forms.CharField(
        label=label, required=False, help_text=help_text, widget=forms.Select(choices=choices)
    )


class _PathForm(forms.Form):
    """A form whose inputs are named by paths: ``budget__stage__questions`` is nested."""

    use_required_attribute = False

    def add_prefix(self, field_name: str) -> str:
        path = field_name.replace("__", ".")
        return f"{self.prefix}.{path}" if self.prefix else path

    def offer(self, name: str, values: Iterable[str], empty: str | None = None) -> None:
        """Let a list offer ``values`` and what the form holds already."""
        own = str(self[name].value() or "")
        known = list(dict.fromkeys(values))
        if own and own not in known:
            known.append(own)
        widget = self.fields[name].widget
        if isinstance(widget, forms.Select):
            first = [] if empty is None else [("", empty)]
            widget.choices = first + [(value, value) for value in known]

    def mark_required(self, *names: str) -> None:
        """Let fields not be shown as optional. The file's rules refuse empty ones, not the form."""
        _ = self.errors  # Found before: what is marked now is not judged twice.
        for name in names:
            self.fields[name].required = True

    def document(self) -> Document:
        """Return what is filled in, as the file would say it."""
        found: Document = {}
        for name in self.fields:
            value = READ.get(name, str)(str(self[name].value() or "").strip())
            if value not in ("", [], {}, None):
                _put(found, name.split("__"), value)
        return found


class ExperimentForm(_PathForm):
    """All of an experiment but its arms."""

    name = _text("Name", "Letters, digits, dots, dashes. It cannot be changed later.")
    questions = _choice("Question set", [])
    limit = _number("Only the first", "So many questions, in the order of the set.")
    sample__n = _number("Or a sample of", "So many questions, drawn by the seed below.")
    sample__seed = _number("Seed of the sample")
    sample__by = _choice(
        "In equal shares of", [("", "–"), ("stratum", "stratum"), ("family", "family")]
    )
    seeds = _text("Seeds", "One run for each: 1, 2, 3 or 1-5.")
    concurrency = _number("Calls at once", "At most; a model's own limit may be lower.")
    budget__microusd_total = _number("Whole experiment, US dollars", "Nothing is spent beyond.")
    budget__microusd_per_run = _number("Each run, US dollars")
    budget__output_tokens_per_run = _number("Each run, output tokens")
    budget__deadline_seconds = _number("Each run, seconds")
    budget__stage__questions = _number("Stop and ask after", "So many questions: a pilot.")
    budget__stage__confirm_above_microusd = _number(
        "Ask only if the whole will cost more than, US dollars", "Empty: ask in any case."
    )
    analysis__primary = _text("Primary metrics", "One or several of: " + ", ".join(METRICS))
    analysis__contrasts = _lines("Contrasts", "A pair of arms on each line: debate, alone")
    analysis__family = _choice(
        "Correction for several contrasts", [("holm", "Holm"), ("none", "none")]
    )
    analysis__margin = _number("Margin of equivalence", "Such as 0.02; empty for none.")
    analysis__alpha = _number("Alpha", "Two-sided; 0.05 where empty.")
    analysis__split = _choice(
        "Split", [("", "all questions"), ("validation", "validation"), ("test", "test")]
    )


class ArmForm(_PathForm):
    """One arm; its prefix is its place in the file: ``arms[0]``."""

    name = _text("Name of the arm")
    protocol = _choice("Protocol", [])
    models = _lines(
        "Models",
        "A slot or an agent and its model on each line. Empty for an arm that follows another.",
        rows="2",
    )
    agents = _number("Agents", "Empty: as many as the protocol has.")
    branch_from__arm = _choice("Starts from the initial answers of", [])
    match__arm = _choice("Takes as many agents as cost what this arm costs", [])
    match__by = _choice(
        "Cost counted in", [("", "–"), ("output_tokens", "output tokens"), ("microusd", "money")]
    )


def _whole(text: str) -> Any:
    return int(text) if _WHOLE.fullmatch(text) else text


def _real(text: str) -> Any:
    return float(text) if _REAL.fullmatch(text) else text


def _microusd(text: str) -> Any:
    """Return dollars as micro-USD; what is no amount stays what it is, to be refused in words."""
    try:
        amount = Decimal(text.removeprefix("$").replace(",", "")) * MICROUSD
    except InvalidOperation:
        return text
    whole = amount.is_finite() and 0 <= amount < 10**18 and amount == int(amount)
    return int(amount) if whole else text


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if word]


def _seeds(text: str) -> list[Any]:
    """Return ``1, 2, 5-7`` as its numbers; a range beyond all reason stays a word."""
    found: list[Any] = []
    for word in _words(text):
        first, dash, last = word.partition("-")
        if dash and _WHOLE.fullmatch(first) and _WHOLE.fullmatch(last):
            low, high = int(first), int(last)
            found += range(low, high + 1) if 0 <= high - low <= 2_000 else [word]
        else:
            found.append(_whole(word))
    return found


def _pairs(text: str) -> list[list[str]]:
    lines = (line for line in text.splitlines() if line.strip())
    return [[part.strip() for part in line.split(",")] for line in lines]


def _mapping(text: str) -> Document:
    """Return ``slot: model`` lines as a mapping; a model alone fills the default slot."""
    found: Document = {}
    for line in text.splitlines():
        slot, colon, model = line.strip().partition(": ")
        if slot and not colon:
            slot, model = "default", slot
        if slot:
            found[slot] = model.strip()
    return found


READ: Mapping[str, Any] = {
    "limit": _whole,
    "sample__n": _whole,
    "sample__seed": _whole,
    "seeds": _seeds,
    "concurrency": _whole,
    "agents": _whole,
    "models": _mapping,
    "budget__microusd_total": _microusd,
    "budget__microusd_per_run": _microusd,
    "budget__output_tokens_per_run": _whole,
    "budget__deadline_seconds": _whole,
    "budget__stage__questions": _whole,
    "budget__stage__confirm_above_microusd": _microusd,
    "analysis__primary": _words,
    "analysis__contrasts": _pairs,
    "analysis__margin": _real,
    "analysis__alpha": _real,
}


def _put(document: Document, path: Sequence[str], value: Any) -> None:
    for step in path[:-1]:
        document = document.setdefault(step, {})
    document[path[-1]] = value


def _shown(name: str, value: Any) -> str:
    """Return a value of the file as its input shows it: the reverse of ``READ``."""
    if value is None:
        return ""
    if READ.get(name) is _microusd and isinstance(value, int):
        return f"{Decimal(value) / MICROUSD:f}"
    if name == "analysis__contrasts":
        return "\n".join(", ".join(map(str, pair)) for pair in value)
    if isinstance(value, Mapping):
        return "\n".join(f"{slot}: {model}" for slot, model in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


Form = TypeVar("Form", bound=_PathForm)


def _filled(form: type[Form], document: Mapping[str, Any], prefix: str | None = None) -> Form:
    """Return the form as if the document had been typed into it."""
    made = form({}, prefix=prefix)
    made.data = {
        made.add_prefix(name): _shown(name, _value_at(document, name)) for name in made.fields
    }
    return made


def _value_at(document: Mapping[str, Any], name: str) -> Any:
    value: Any = document
    for step in name.split("__"):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


class Marked(NamedTuple):
    """A fault that stands beside an input: the input's id and name, and what is wrong."""

    field_id: str
    label: str
    said: str


class SetUp:
    """The form of an experiment with its arms, from a document or from what was posted."""

    def __init__(self, top: ExperimentForm, arms: list[ArmForm]) -> None:
        self.top = top
        self.arms = arms
        self.others: list[str] = []

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> SetUp:
        arms = document.get("arms") or []
        return cls(
            _filled(ExperimentForm, document),
            [_filled(ArmForm, arm, f"arms[{place}]") for place, arm in enumerate(arms)],
        )

    @classmethod
    def of_post(cls, data: Any) -> SetUp:
        count = 0
        while count < MAX_ARMS and f"arms[{count}].name" in data:
            count += 1
        arms = [ArmForm(data, prefix=f"arms[{place}]") for place in range(count)]
        return cls(ExperimentForm(data), arms)

    def document(self) -> Document:
        arms = [arm.document() for arm in self.arms]
        found = {**self.top.document(), "arms": arms}
        order = ["name", "questions", "limit", "sample", "seeds", "arms"]
        return {key: found[key] for key in [*order, *found] if key in found}

    def offer(self, *, questions: Sequence[str], protocols: Sequence[str]) -> None:
        """Fill the lists: what there is in the workspace, and the arms before each arm."""
        self.top.offer("questions", questions, empty=None if questions else "none yet")
        self.top.mark_required("name", "questions")
        names: list[str] = []
        for arm in self.arms:
            arm.offer("protocol", protocols)
            arm.mark_required("name", "protocol")
            arm.offer("branch_from__arm", names, empty="none: it answers itself")
            arm.offer("match__arm", names, empty="none")
            names += filter(None, [str(arm["name"].value() or "")])

    def note(self, faults: Iterable[str]) -> None:
        """Put each fault beside its input; what belongs to none stands in ``others``."""
        for fault in faults:
            found = _FAULT.fullmatch(fault)
            if found is None or not self._place(found["path"], found["what"]):
                self.others.append(fault)

    def _place(self, path: str, what: str) -> bool:
        """Find the longest input that the path lies in. A fault of a whole arm is its name's."""
        for form in (*self.arms, self.top):
            for name in sorted(form.fields, key=len, reverse=True):
                key = form.add_prefix(name)
                inside = path.removeprefix(key)
                if path.startswith(key) and (not inside or inside[0] in ".["):
                    said = _in_dollars(what) if READ.get(name) is _microusd else what
                    form.add_error(name, f"{inside.lstrip('.')}: {said}" if inside else said)
                    return True
        for form in self.arms:
            if path.startswith(str(form.prefix)):
                name = "branch_from__arm" if "branch_from" in path else "name"
                form.add_error("match__arm" if ".match" in path else name, f"{path}: {what}")
                return True
        return False

    @property
    def marked(self) -> list[Marked]:
        """Return every fault that stands beside an input, in the order of the page."""
        found: list[Marked] = []
        for place, form in enumerate([self.top, *self.arms]):
            arm = f"Arm {place}, " if place else ""
            found += [
                Marked(form[name].auto_id, f"{arm}{form[name].label}", str(said))
                for name, faults in form.errors.items()
                for said in faults
            ]
        return found

    @property
    def has_faults(self) -> bool:
        return bool(self.others) or any(form.errors for form in (self.top, *self.arms))


def _in_dollars(what: str) -> str:
    """Say of an amount what is wrong with it as it was typed; the file counts in micro-USD."""
    if "whole number" in what:
        return "must be an amount in US dollars, such as 2.50, to the millionth at most"
    return f"{what} (in micro-USD, a millionth of a dollar)"


def to_yaml(document: Mapping[str, Any]) -> str:
    """Return a document of plain values as YAML 1.2."""
    yaml = YAML(typ="rt", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 2**20
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    yaml.dump(_styled(document), out)
    return out.getvalue()


def _styled(value: Any) -> Any:
    """Write short lists in one line: ``seeds: [1, 2, 3]``."""
    if isinstance(value, Mapping):
        return {key: _styled(inner) for key, inner in value.items()}
    if isinstance(value, list):
        made = CommentedSeq(map(_styled, value))
        if not any(isinstance(item, Mapping | list) for item in value):
            made.fa.set_flow_style()
        return made
    return value


def document_of_spec(spec: Mapping[str, Any]) -> Document:
    """Return a stored specification as the file that would say the same."""
    found: Document = _pruned(spec)
    if "route" in found:
        found["route"]["from"] = found["route"].pop("from_arm")
    return found


def _pruned(value: Any) -> Any:
    if isinstance(value, Mapping):
        inner = {key: _pruned(v) for key, v in value.items()}
        return {key: v for key, v in inner.items() if v not in (None, "", [], {})}
    if isinstance(value, list | tuple):
        return [_pruned(item) for item in value]
    return value
