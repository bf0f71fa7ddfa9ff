"""A report as people read it: what the templates of page and file show, already in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.utils.safestring import SafeString

from audits.reports.definitions import SECTIONS, Form, definition_of
from audits.reports.plots import Effect, Step, flow, forest
from audits.reports.tabulate import Table, tables_of
from debateweb.texts import printable

QUESTION = (
    "Under these models, tasks and budgets, which exchanges repaired which initial answers, and "
    "which correct answers did they lose?"
)
RAW_NOTE = "includes resampling: asking again repairs and damages without any exchange"
AGGS = {"pooled": "all together", "macro": "mean per question"}
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
    questions: str
    reason: str
    notes: str
    rows_url: str = ""


@dataclass(frozen=True, slots=True)
class Links:
    """Where page and rows are; the file that is downloaded has none."""

    rows: str = ""
    table: str = ""

    def rows_of(self, figure: Json) -> str:
        """Return the page of a figure's rows: asked as its own address asks."""
        query = str(figure["rows"] or "").partition("?")[2]
        return f"{self.rows}?{query}" if self.rows and query else ""

    def table_of(self, condition: str, table: Table) -> str:
        if not self.table:
            return ""
        return f"{self.table}?{urlencode({'condition': condition, 'table': table.name})}"


def screen(report: Json, links: Links | None = None) -> dict[str, Any]:
    """Return the context of ``audits/_report_body.html``."""
    links = links or Links()
    conditions = [
        _condition(body, number, links) for number, body in enumerate(report["conditions"], 1)
    ]
    return {
        "question": QUESTION,
        "name": report["name"],
        "kind": {"experiment": "an experiment", "debates": "imported debates"}[report["kind"]],
        "conditions": conditions,
        "comparisons": _comparisons(report, links),
        "forest": _forest(report),
        "deviations": [_deviation(one) for one in report["deviations"]],
        "fronts": [_front(front) for front in report.get("cost_fronts", [])],
        "inputs": list(_inputs(report["inputs"])),
    }


def _condition(body: Json, number: int, links: Links) -> dict[str, Any]:
    shown = [show(figure, links) for figure in body["figures"]]
    pairs = list(zip(body["figures"], shown, strict=True))
    counts = body["tables"].get("counts", {})
    return {
        "anchor": f"condition-{number}",
        "name": printable(body["name"]),
        "protocol": printable(body.get("protocol") or ""),
        "protocol_hash": body.get("protocol_hash") or "",
        "marked": body["marked"] or "",
        "labels": [printable(label) for label in body["labels"]],
        "counts": counts,
        "runs": body.get("runs"),
        "same_start": printable(body.get("same_start") or ""),
        "leads": [show(figure, links) for figure in _leads(body["figures"])],
        "unscored": list(_unscored(body)),
        "sections": list(_sections(pairs)),
        "flows": _flows(body),
        "tables": [(table, links.table_of(body["name"], table)) for table in tables_of(body)],
    }


def _leads(figures: Sequence[Json]) -> Iterator[Json]:
    """Yield the four figures of the first screen: excess rates where they exist, else raw ones."""
    for metrics in (
        ("excess_repair_T", "repair_T"),
        ("excess_damage_T", "damage_T"),
        ("accuracy_T",),
        ("accuracy_change",),
    ):
        for metric in metrics:
            found = _headline(figures, metric)
            if found is not None:
                yield found
                break


def _headline(figures: Sequence[Json], metric: str) -> Json | None:
    for figure in figures:
        whole = not {"variant", "stratum", "agent"} & figure["by"].keys()
        if figure["metric"] == metric and figure["agg"] != "macro" and whole:
            return figure
    return None


def _sections(pairs: Sequence[tuple[Json, Shown]]) -> Iterator[tuple[str, list[Shown]]]:
    for name in SECTIONS:
        own = [shown for raw, shown in pairs if definition_of(raw["metric"]).section == name]
        if own:
            yield name, own


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
        detail=printable(", ".join(_details(figure))),
        value=written(figure["value"], form),
        interval=f"{written(low, form)} to {written(high, form)}" if low is not None else "",
        method=METHODS.get(figure["ci_method"] or "", figure["ci_method"] or ""),
        counts=_counts(figure),
        questions=_questions(figure),
        reason=printable(figure["reason"] or ""),
        notes=printable("; ".join(notes)),
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
        yield definition_of(value).words if key == "metric" else f"{key} {value}"


def written(value: float | None, form: Form) -> str:
    """Return a value as it is read, or ``undefined``."""
    if value is None:
        return "undefined"
    match form:
        case "share":
            return f"{value * 100:.1f} %"
        case "points":
            points = round(value * 100, 1)
            return f"{points:+.1f} points".replace("-", "−") if points else "0.0 points"
        case "usd":
            return f"${value / 1_000_000:,.4f}"
        case "seconds":
            return f"{value:,.1f} s"
    return f"{value:,.2f}".rstrip("0").rstrip(".").replace("-", "−")


def _counts(figure: Json) -> str:
    if figure["num"] is None or figure["den"] is None:
        return ""
    return f"{figure['num']:.6g} / {figure['den']:.6g}"


def _questions(figure: Json) -> str:
    undefined = f" (+{figure['n_undefined']} undefined)" if figure["n_undefined"] else ""
    return f"{figure['n_questions']}{undefined}"


def _unscored(body: Json) -> Iterator[str]:
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
            "pair": printable(f"{pair['a']} − {pair['b']}"),
            "shown": show(figure, links),
            "p": _p(figure.get("p")),
            "p_holm": _p(figure.get("p_holm")),
            "test": figure.get("test") or "",
            "mde": written(figure.get("mde_80"), _form(figure)).lstrip("+"),
            "margin": "" if figure.get("margin") is None else written(figure["margin"], "share"),
            "p_non_inferior": _p(figure.get("p_non_inferior")),
        }
        for pair in report["comparisons"]
        for figure in pair["figures"]
    ]


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _forest(report: Json) -> SafeString:
    effects = [
        Effect(
            printable(f"{pair['a']} − {pair['b']}: {_details_of_difference(figure)}"),
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
    return printable(where + one["text"])


def _front(front: Json) -> dict[str, Any]:
    words = {"cost_microusd": "money", "tokens_out": "output tokens"}
    form: Form = "usd" if front["unit"] == "cost_microusd" else "number"
    return {
        "unit": words.get(front["unit"], front["unit"]),
        "reason": front["reason"] or "",
        "points": [
            {
                "condition": printable(point["condition"]),
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
        words = key.replace("_", " ")
        if isinstance(value, dict):
            for name, own in value.items():
                yield f"{words}: {printable(name)}", str(own)
        else:
            yield words, str(value)
