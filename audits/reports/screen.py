"""A report as people read it: what the templates of page and file show, already in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.utils.safestring import SafeString
from django.utils.text import slugify

from audits.reports.definitions import SECTIONS, definition_of
from audits.reports.judge_plots import flips, places
from audits.reports.judged import NO_VERDICT
from audits.reports.leads import (
    AGREEMENTS,
    KINDS,
    LEADS,
    NOTHING_UNSCORED,
    QUESTIONS,
    UNSCORED,
    Lead,
    facts,
    is_whole,
)
from audits.reports.plots import Effect, Step, flow, forest
from audits.reports.tabulate import Table, tables_of
from audits.reports.wording import Form
from debateweb.texts import printable

RAW_NOTE = "includes resampling: asking again repairs and damages without any exchange"
RAW = {"repair_T", "damage_T"}
#: Longer words of others are cut; the JSON has them whole.
MOST_SAID = 300
AGGS = {"pooled": "all together", "macro": "mean per question"}
TIMES = {"0": "at the start", "T": "at the end", "change": "from start to end"}
TESTS = {"mcnemar_exact": "exact McNemar", "sign_flip": "sign flips", "none": "none"}
METHODS = {
    "wilson": "Wilson",
    "bonett_price": "Bonett–Price",
    "cr1_t": "cluster-robust t",
    "qboot_percentile": "bootstrap over questions",
}

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure in words. ``rows_url`` is empty where nothing can be opened."""

    metric: str
    words: str
    sentence: str
    over: str
    detail: str
    value: str
    interval: str
    method: str
    counts: str
    n: int
    undefined: int
    reason: str
    notes: str
    rows_url: str = ""

    @property
    def questions(self) -> str:
        return f"{self.n} (+{self.undefined} undefined)" if self.undefined else str(self.n)


@dataclass(frozen=True, slots=True)
class Section:
    """Figures of one kind: those over the whole, and by metric what they break down to."""

    title: str
    anchor: str
    main: list[Shown]
    more: list[list[Shown]]

    @property
    def breakdowns(self) -> int:
        return sum(map(len, self.more))


@dataclass(frozen=True, slots=True)
class Links:
    """
    Where rows and tables are, as addresses; empty where nobody knows.

    ``report`` is the key of the stored report, so that a newer one does not change the rows.
    """

    rows: str = ""
    table: str = ""
    report: int | None = None

    def rows_of(self, figure: Json) -> str:
        """Return the page of a figure's rows: asked as its own address asks."""
        query = str(figure["rows"] or "").partition("?")[2]
        return f"{self.rows}?{query}{self._of_report()}" if self.rows and query else ""

    def table_of(self, condition: str, table: Table) -> str:
        if not self.table:
            return ""
        asked = urlencode({"condition": condition, "table": table.name})
        return f"{self.table}?{asked}{self._of_report()}"

    def _of_report(self) -> str:
        return f"&report={self.report}" if self.report is not None else ""


def screen(report: Json, links: Links | None = None) -> dict[str, Any]:
    """Return the context of ``audits/_report_body.html``."""
    links = links or Links()
    bodies, kind = report["conditions"], report["kind"]
    leads = [lead for lead in LEADS[kind] if lead.is_shown(bodies)]
    conditions = [_condition(body, number, leads, links) for number, body in enumerate(bodies, 1)]
    used = dict.fromkeys(f["metric"] for body in bodies for f in body["figures"])
    return {
        "question": QUESTIONS[kind],
        "name": report["name"],
        "kind": KINDS[kind],
        "is_judged": kind in UNSCORED,
        "leads": [(lead.words, lead.is_raw) for lead in leads],
        "conditions": conditions,
        "leading": [one for one in conditions if any(lead for _, lead in one["leads"])],
        "agreements": list(_agreements(bodies, links)),
        "unscored_title": UNSCORED.get(kind, "What was not scored, and why"),
        "nothing_unscored": NOTHING_UNSCORED.get(kind, "All that was done was scored."),
        "unscored": [
            f"{condition['name']}: {text}"
            for condition, body in zip(conditions, bodies, strict=True)
            for text in _unscored(body)
        ],
        "comparisons": _comparisons(report, links),
        "forest": _forest(report),
        "deviations": [
            _deviation(one) for one in report["deviations"] if one.get("code") != NO_VERDICT
        ],
        "fronts": [_front(front) for front in report.get("cost_fronts", [])],
        "definitions": [(metric, definition_of(metric)) for metric in used],
        "inputs": list(_inputs(report["inputs"])),
    }


def _agreements(bodies: Sequence[Json], links: Links) -> Iterator[dict[str, Any]]:
    """Yield the agreements of people and judge, where there are people to agree with."""
    if not any("labels" in body["tables"] for body in bodies):
        return
    for between, leads in AGREEMENTS:
        found = [
            {"between": between, "condition": said(body["name"]), "one": show(figure, links)}
            for body in bodies
            for lead in leads
            if (figure := lead.of(body["figures"])) is not None and figure["value"] is not None
        ]
        if found:
            yield {"between": between, "rows": found}


def said(text: str) -> str:
    """Return what others wrote so that it cannot act, and not longer than can be read."""
    if len(text) <= MOST_SAID:
        return printable(text)
    return f"{printable(text[:MOST_SAID])}… ({len(text):,} characters)"


def _condition(body: Json, number: int, leads: Sequence[Lead], links: Links) -> dict[str, Any]:
    anchor = f"condition-{number}"
    return {
        "anchor": anchor,
        "name": said(body["name"]),
        "facts": said(facts(body)),
        "marked": said(body["marked"] or ""),
        "labels": [said(label) for label in body["labels"] if label != body["marked"]],
        "leads": [_lead(body["figures"], lead, links) for lead in leads],
        "sections": list(_sections(body["figures"], anchor, links)),
        "flows": _flows(body),
        "matrices": _matrices(body),
        "tables": [(table, links.table_of(body["name"], table)) for table in tables_of(body)],
    }


def _lead(figures: Sequence[Json], lead: Lead, links: Links) -> tuple[str, Shown | None]:
    found = lead.of(figures)
    return lead.words, show(found, links) if found is not None else None


def _matrices(body: Json) -> list[SafeString]:
    drawn = (flips(body["tables"].get("order_flips", ())),
             places(body["tables"].get("winners_by_place", ())))  # fmt: skip
    return [svg for svg in drawn if svg]


def _sections(figures: Sequence[Json], anchor: str, links: Links) -> Iterator[Section]:
    for name in SECTIONS:
        own = [f for f in figures if definition_of(f["metric"]).section == name]
        if own:
            yield _section(name, own, anchor, links)


def _section(title: str, figures: Sequence[Json], anchor: str, links: Links) -> Section:
    """Put the figures over the whole first, and under each metric what it breaks down to."""
    seen: set[str] = set()
    main: list[Shown] = []
    more: dict[str, list[Shown]] = {}
    for figure in figures:
        by = {key: value for key, value in figure["by"].items() if key != "aggregator"}
        key = repr((figure["metric"], figure["round"], sorted(by.items())))
        if is_whole(figure) and key not in seen:
            seen.add(key)
            main.append(show(figure, links))
        else:
            more.setdefault(figure["metric"], []).append(show(figure, links))
    return Section(title, f"{anchor}-{slugify(title)}", main, list(more.values()))


def show(figure: Json, links: Links) -> Shown:
    """Return a figure of the report JSON in words."""
    definition = definition_of(figure["metric"])
    form = _form(figure)
    low, high = figure["ci"] or (None, None)
    notes = list(figure["notes"])
    if figure["metric"] in {"repair_T", "damage_T"} and "includes resampling" in notes:
        notes[notes.index("includes resampling")] = RAW_NOTE
    return Shown(
        metric=figure["metric"],
        words=definition.words,
        sentence=definition.sentence,
        over=definition.over,
        detail=said(", ".join(_details(figure))),
        value=written(figure["value"], form),
        interval=_interval(low, high, form),
        method=METHODS.get(figure["ci_method"] or "", figure["ci_method"] or ""),
        counts=_counts(figure),
        n=figure["n_questions"],
        undefined=figure["n_undefined"] or 0,
        reason=said(figure["reason"] or ""),
        notes=said("; ".join(notes)),
        rows_url=links.rows_of(figure),
    )


def _form(figure: Json) -> Form:
    if figure["metric"] == "difference":
        form = definition_of(figure["by"].get("metric", "")).form
        return "points" if form == "share" else form
    return definition_of(figure["metric"]).form


def _details(figure: Json) -> Iterator[str]:
    if figure["agg"]:
        yield AGGS[figure["agg"]]
    if figure["round"] is not None:
        yield f"round {figure['round']}"
    for key, value in figure["by"].items():
        if key == "metric":
            yield definition_of(value).words
        else:
            yield TIMES.get(value, f"at {value}") if key == "at" else f"{key} {value}"


def written(value: float | None, form: Form) -> str:
    """Return a value as it is read, or ``undefined``."""
    if value is None:
        return "undefined"
    match form:
        case "share":
            return f"{value * 100:.1f} %".replace("-", "−")
        case "points":
            points = round(value * 100, 1)
            return f"{points:+.1f} points".replace("-", "−") if points else "0.0 points"
        case "usd":
            return f"${value / 1_000_000:,.4f}"
        case "seconds":
            return f"{value:,.1f} s"
    return f"{value:,.2f}".rstrip("0").rstrip(".").replace("-", "−")


def _interval(low: float | None, high: float | None, form: Form) -> str:
    """Return both ends with the unit said once."""
    if low is None or high is None:
        return ""
    start = written(low, form)
    for unit in (" points", " %", " s"):
        start = start.removesuffix(unit)
    return f"{start} to {written(high, form)}"


def _counts(figure: Json) -> str:
    if figure["num"] is None or figure["den"] is None:
        return ""
    return f"{figure['num']:.6g} / {figure['den']:.6g}"


def _unscored(body: Json) -> Iterator[str]:
    for row in body["tables"].get("failures", ()):
        cause = f", {row['cause']}" if row["cause"] else ""
        order = "the given order" if row["order"] == "given" else "another order"
        yield said(f"{row['n']} judgments {row['status']} in {order}{cause}")
    counts, instrument = body["tables"].get("counts", {}), body["tables"].get("instrument", {})
    unchecked = counts.get("runs_without_objective_check", 0)
    if unchecked:
        yield f"{unchecked} of {counts['runs']} runs are on questions without an objective check"
    if instrument.get("unscored_states"):
        yield (
            f"{instrument['unscored_states']} final states were left unscored by the check and "
            "count as wrong; the table of bounds says by how much that can matter"
        )
    runs = body.get("runs")
    if runs and runs["done"] != runs["designed"]:
        yield f"{runs['designed'] - runs['done']} of {runs['designed']} runs are not done"


def _flows(body: Json) -> list[SafeString]:
    steps = body["tables"].get("transitions", [])
    drawn = (
        flow(
            Step(row["step"], row["right_before"], row["wrong_before"], row["fixed"], row["broke"])
        )
        for row in steps
    )
    return [svg for svg in drawn if svg]


def _comparisons(report: Json, links: Links) -> list[dict[str, Any]]:
    return [
        {
            "pair": f"{said(pair['a'])} − {said(pair['b'])}",
            "shown": show(figure, links),
            "p": _p(figure.get("p")),
            "p_holm": _p(figure.get("p_holm")),
            "test": TESTS.get(figure.get("test") or "", figure.get("test") or ""),
            "mde": _detectable(figure),
            "margin": "" if figure.get("margin") is None else written(figure["margin"], "share"),
            "p_non_inferior": _p(figure.get("p_non_inferior")),
        }
        for pair in report["comparisons"]
        for figure in pair["figures"]
    ]


def _detectable(figure: Json) -> str:
    if figure.get("mde_80") is None:
        return "undefined" if figure["value"] is None else "undefined: they never differed"
    return written(figure["mde_80"], _form(figure)).lstrip("+")


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _forest(report: Json) -> SafeString:
    effects = [
        Effect(
            f"{said(pair['a'])} − {said(pair['b'])}: {_details_of_difference(figure)}",
            figure["value"],
            figure["ci"],
            written(figure["value"], "points"),
        )
        for pair in report["comparisons"]
        for figure in pair["figures"]
        if figure["value"] is not None and _form(figure) == "points"
    ]
    return forest("Paired differences with their intervals", effects)


def _details_of_difference(figure: Json) -> str:
    return definition_of(figure["by"].get("metric", "")).words


def _deviation(one: Json) -> str:
    where = f"{one['condition']}: " if one["condition"] else ""
    return said(where + one["text"])


def _front(front: Json) -> dict[str, Any]:
    words = {"cost_microusd": "money", "tokens_out": "output tokens"}
    form: Form = "usd" if front["unit"] == "cost_microusd" else "number"
    return {
        "unit": words.get(front["unit"], front["unit"]),
        "reason": front["reason"] or "",
        "points": [
            {
                "condition": said(point["condition"]),
                "cost": written(point["cost_per_question"], form),
                "accuracy": written(point["accuracy"], "share"),
                "on_front": point["on_front"],
                "membership": written(point["membership"], "share"),
            }
            for point in front["points"]
        ],
    }


def _inputs(inputs: Json) -> Iterator[tuple[str, str]]:
    for key, value in inputs.items():
        words = said(key.replace("_", " "))
        if isinstance(value, dict):
            for name, own in value.items():
                yield f"{words}: {said(name)}", said(str(own))
        else:
            yield words, said(str(value))
