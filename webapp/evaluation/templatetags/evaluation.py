"""Cells, curves and scatters of a report, as HTML that needs neither scripts nor inline styles."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal
from urllib.parse import urlencode

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from ..models import Evaluation
from ..results import drawing

register = template.Library()
DASH = "–"
COUNTING = ("estimate", "count")  # without tags such a number rests on every case
LEAST_P = 0.001


@register.simple_tag
def cell(shown: Mapping[str, Any], evaluation: Evaluation | Literal[""] | None = None) -> SafeString:
    """A number with its interval, n and missing cases, linked to the cases behind it if there is an evaluation."""
    if shown["kind"] == "text":
        leads = shown.get("tags") or shown.get("compare") or shown.get("href")
        return _linked(shown["text"], shown, evaluation, "row-link" if leads else "")
    value = amount(shown.get("value"), shown.get("unit", "count"))
    if shown.get("value") is None:
        why = shown.get("undefined", "not known")
        return format_html('<span class="missing">{}</span><small class="muted">{} {}</small>', DASH, why, _lost(shown))
    number = _linked(value, shown, evaluation, f"value {shown.get('tone', '')}".strip())
    note = format_html("<small>{}</small>", shown["note"]) if shown.get("note") else ""
    if shown["kind"] != "estimate":
        n = format_html('<small class="muted">n {}</small>', f"{shown['n']:,}") if "n" in shown else ""
        return format_html("{}{}{}", number, n, note)
    return format_html("{}{}{}", number, _interval(shown), note)


def _interval(shown: Mapping[str, Any]) -> SafeString:
    unit = shown.get("unit", "share")
    low, high = shown.get("low"), shown.get("high")
    between = format_html('<span class="why">{}</span>', shown.get("interval") or "no interval")
    if low is not None and high is not None:
        between = format_html("<span>{} to {}</span>", _bare(low, unit), _bare(high, unit))
    n = f"n {shown.get('n', 0):,}"
    return format_html('<small class="muted">{} <span>{}</span> {}</small>', between, n, _lost(shown))


def _lost(shown: Mapping[str, Any]) -> SafeString | str:
    missing = shown.get("missing") or 0
    return format_html('<span class="warn">{} missing</span>', f"{missing:,}") if missing else ""


def _linked(words: str, shown: Mapping[str, Any], evaluation: Evaluation | Literal[""] | None, css: str) -> SafeString:
    if shown.get("href") and evaluation:
        return format_html('<a class="{}" href="{}">{}</a>', css, shown["href"], words)
    if shown.get("compare") and evaluation:
        href = reverse("evaluation_compare", args=[evaluation.pk]) + "?" + urlencode({"example": shown["compare"]})
        return format_html('<a class="{}" href="{}">{}</a>', css, href, words)
    if evaluation and (shown.get("tags") or shown["kind"] in COUNTING):
        href = cases_url(evaluation, shown.get("tags", ()))
        return format_html('<a class="{}" href="{}">{}</a>', css, href, words)
    return format_html('<span class="{}">{}</span>', css, words)


@register.simple_tag
def cases_url(evaluation: Evaluation, tags: Iterable[str]) -> str:
    """The cases of `evaluation` that carry all of `tags`."""
    query = urlencode([("tag", each) for each in tags])
    return reverse("evaluation_cases", args=[evaluation.pk]) + (f"?{query}" if query else "")


@register.simple_tag
def tags_query(tags: Iterable[str]) -> str:
    return urlencode([("tag", each) for each in tags])


@register.filter
def amount(value: float | None, unit: str = "number") -> str:
    """A value in its unit, as people read it; a dash if it is missing."""
    if value is None:
        return DASH
    if unit == "share":
        return f"{value:.1%}"
    if unit == "gap":  # a difference of percentages: "%" would read as a share of the first one
        return f"{value * 100:+.1f} pp"
    if unit == "p":
        return f"{value:.3f}" if value >= LEAST_P else f"< {LEAST_P}"
    if unit == "count":
        return f"{value:,.0f}"
    if unit == "weight":
        return f"{value:g}"
    if unit == "money":
        return f"{value:,.4f}"
    if unit == "seconds":
        return f"{value:,.2f} s"
    return f"{value:,.3f}"


def _bare(value: float, unit: str) -> str:
    return f"{value * 100:.1f}" if unit in ("share", "gap") else amount(value, unit).removesuffix(" s")


@register.simple_tag
def curve(block: Mapping[str, Any], evaluation: Evaluation | Literal[""] | None = None) -> SafeString:
    """A line chart with intervals as bars; a point leads to its cases if there is an evaluation."""
    return drawing.curve(block, _leads(evaluation))


@register.simple_tag
def scatter(block: Mapping[str, Any], evaluation: Evaluation | Literal[""] | None = None) -> SafeString:
    """Named points with intervals in both directions; a point leads to its cases if there is an evaluation."""
    return drawing.scatter(block, _leads(evaluation))


def _leads(evaluation: Evaluation | Literal[""] | None) -> drawing.Link | None:
    return (lambda tags: cases_url(evaluation, tags)) if evaluation else None


@register.simple_tag
def legend(block: Mapping[str, Any]) -> SafeString:
    """The names of a chart's series beside their colours."""
    names = [each["name"] for each in block.get("series") or block.get("points") or []]
    rows = ((i % drawing.SERIES + 1, name) for i, name in enumerate(names))
    return format_html_join(
        "", '<span class="legend-item"><span class="swatch" data-series="{}"></span>{}</span>', rows
    )


@register.simple_tag
def heads(block: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """The columns of a table: (words, help, whether they hold numbers, which stand at the right)."""
    first = block["rows"][0] if block["rows"] else []
    kinds = [cell["kind"] for cell in first] or ["text"] + ["number"] * len(block["columns"])
    return [(words, about, kind != "text") for (words, about), kind in zip(block["columns"], kinds, strict=False)]


@register.simple_tag
def values_of(block: Mapping[str, Any]) -> dict[str, Any]:
    """The estimates that a chart draws, as a table: its columns, and its rows as (name, cells)."""
    if block["kind"] == "scatter":
        return {"columns": [block["x"], block["y"]], "rows": [(p["name"], [p["x"], p["y"]]) for p in block["points"]]}
    places = sorted({point["x"] for each in block["series"] for point in each["points"]})
    rows = []
    for each in block["series"]:
        known = {point["x"]: {"kind": "estimate", "unit": "share", **point} for point in each["points"]}
        rows.append((each["name"], [known.get(place, NOWHERE) for place in places]))
    return {"columns": [f"{place:.3g}" for place in places], "rows": rows, "corner": block["x"]}


NOWHERE = {"kind": "number", "value": None, "undefined": "not measured here"}
ABOUT = ("judge", "model", "pair", "example", "group", "response", "a", "b", "criterion", "criterion id", "demand")


@register.simple_tag
def subject(about: Mapping[str, Any]) -> SafeString:
    """The subject of a case, in two lines: who, and what."""
    who = about.get("judge") or about.get("model") or ""
    what = [str(about[name]) for name in ("pair", "example") if about.get(name)][:1]
    what += [str(about[name]) for name in ("response", "criterion", "demand") if about.get(name)]
    first, second = (who, " · ".join(what)) if who else (" · ".join(what[1:]) or what[0], what[0])
    second = "" if second == first else second
    return format_html(
        '<span class="case-who">{}</span><small class="muted truncate case-what">{}</small>', first, second
    )


@register.simple_tag
def facts_of(about: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The parts of a subject in the order people read them, each once: a pair is often called as its example."""
    known = [(name, about[name]) for name in ABOUT if name in about]
    rest = [(name, value) for name, value in about.items() if name not in ABOUT]
    same = about.get("pair") == about.get("example")
    return [(name, value) for name, value in known + rest if not (same and name == "pair")]


@register.simple_tag
def found(values: Mapping[str, Any]) -> SafeString:
    """The plain values of a case in one line."""
    hidden = {"prompt", "text"}  # of rollouts: far too long for a line
    shown = [(n, value) for n, value in values.items() if not isinstance(value, list | dict) and n not in hidden]
    return format_html_join(
        " ", '<span class="pair-fact"><span class="muted">{}</span> {}</span>', ((n, value_of(v)) for n, v in shown)
    )


@register.simple_tag
def matrix(grid: Mapping[str, Any]) -> list[tuple[str, list[tuple[float, bool]]]]:
    """A matching matrix by rows: (words of the row, [(score, whether it is in the matching)])."""
    matched = {tuple(pair) for pair in grid["matched"]}
    return [
        (words, [(score, (h, m) in matched) for m, score in enumerate(scores)])
        for h, (words, scores) in enumerate(zip(grid["rows"], grid["scores"], strict=True))
    ]


@register.simple_tag
def value_of(value: Any) -> SafeString | str:
    """One value of a case; a missing one says so."""
    if value is None:
        return format_html('<span class="missing">{}</span>', "missing")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


TELLS_TROUBLE = ("inconsistent", "missing", "undecided", "not matched", "no score", "passed over", "judges disagree")
TONES = {"wrong": "bad", "hurt": "bad", "right": "good", "helped": "good", "right, other reasons": "warn"}
TONES |= dict.fromkeys(TELLS_TROUBLE, "warn")


@register.simple_tag
def plain_tag(tag: str) -> SafeString:
    kind, _, words = tag.partition(":")
    return format_html(
        '<span class="chip" data-tone="{}">{}</span>', TONES.get(kind, ""), words and f"{kind}: {words}" or kind
    )


@register.filter
def telling(tags: Iterable[str]) -> list[str]:
    """The tags that say how a case came out; the others only say where it belongs."""
    return [tag for tag in tags if tag in TONES]


@register.simple_tag
def report_style(style: str) -> SafeString:
    """The style sheet of the downloaded report, which has no server to ask for one."""
    return mark_safe(f"<style>\n{style}</style>")  # noqa: S308  a file of ours


@register.simple_tag
def verdict_tone(criterion: Mapping[str, Any]) -> Literal["good", "bad", "warn"]:
    """The tone of a criterion's verdict. A criterion with negative points should not be met."""
    if criterion["met"] not in ("met", "not met"):
        return "warn"
    return "good" if (criterion["met"] == "met") == (criterion["points"] >= 0) else "bad"
