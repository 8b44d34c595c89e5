"""Drawings of the server for the pages of projects: a picture of each kind, bars over time."""

from functools import cache
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from trainer.contracts.plurals import with_noun
from webapp.core.templatetags.ui import icon, initials, percent

from ..agreement.person_figures import FigureLine, Share
from ..kinds import KINDS
from ..kinds.base import subject_words
from ..models import Task
from ..people.queries import Person

register = template.Library()
NAMES = {"agreement": "as others", "seconds": "median"}
WORDS = {"agreement": "{:.0%}".format, "seconds": "{:.0f} s".format}
DOWN = [f"{22 - height / 5:.1f}" for height in range(101)]  # the position of a height in percent in a picture of 24
BAR, GAP, HEIGHT = 16, 4, 96
FEWEST_BARS = 24  # there is room for: the first hour of a project is a bar, not a wall


@register.simple_tag
def picture(kind: str) -> SafeString:
    """A small drawing of the page of this kind of task."""
    drawn = mark_safe(KINDS[kind].picture)  # noqa: S308  our own shapes
    return format_html('<svg class="kind-picture" viewBox="0 0 64 44" aria-hidden="true">{}</svg>', drawn)


@register.simple_tag
def bars(points: list[dict[str, Any]], unit: str) -> SafeString:
    """`[{"at", "count"}]` as bars over time. Each bar shows its number under the pointer; screen readers get the whole."""
    most = max((point["count"] for point in points), default=0)
    width = max(len(points), FEWEST_BARS) * (BAR + GAP)
    hourly = len(points) > 1 and (points[1]["at"] - points[0]["at"]).total_seconds() < 86_400
    total = sum(point["count"] for point in points)
    times = with_noun(len(points), "hours" if hourly else "days")
    label = f"{with_noun(total, unit)} over {times}, at most {most} in one"
    drawn = format_html_join("", "{}", ((_bar(i, point, most, hourly, unit),) for i, point in enumerate(points)))
    return format_html(
        '<svg class="bars" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>',
        width,
        HEIGHT,
        label,
        drawn,
    )


def _bar(index: int, point: dict[str, Any], most: int, hourly: bool, unit: str) -> SafeString:
    height = max(HEIGHT * point["count"] / most, 2) if point["count"] else 0
    when = timezone.localtime(point["at"]).strftime("%Y-%m-%d %H:%M" if hourly else "%Y-%m-%d")
    words = format_html("<title>{}: {}</title>", when, with_noun(point["count"], unit))
    hit = format_html('<rect class="hit" x="{}" y="0" width="{}" height="{}"/>', index * (BAR + GAP), BAR + GAP, HEIGHT)
    bar = format_html(
        '<rect class="bar" x="{}" y="{}" width="{}" height="{}"/>',
        index * (BAR + GAP) + GAP / 2,
        f"{HEIGHT - height:.1f}",
        BAR,
        f"{height:.1f}",
    )
    return format_html("<g>{}{}{}</g>", words, hit, bar)


@register.simple_tag
def bars_range(points: list[dict[str, Any]]) -> str:
    """The first and the last moment of `bars`, in words."""
    if len(points) < 2:
        return ""
    first, last = (timezone.localtime(point["at"]) for point in (points[0], points[-1]))
    hourly = (points[1]["at"] - points[0]["at"]).total_seconds() < 86_400
    form = "%-d %b %H:%M" if hourly else "%-d %b"
    return f"{first.strftime(form)} to {last.strftime(form)}, by the {'hour' if hourly else 'day'}"


@register.simple_tag
def share_cell(share: Share | None, missing: str = "") -> SafeString:
    """The table cell of a person's share, with its whole and its sort value; `missing` says why there is none. A template for it took a
    third of the time of the page."""
    if share is None or share.value is None:
        return format_html(
            '<td class="num" data-value=""><span class="missing"{}>–</span></td>',
            format_html(' title="{}"', missing) if missing else "",
        )
    return format_html(
        '<td class="num" data-value="{}">{}<small class="muted block">of {}</small></td>',
        share.value,
        percent(share.value),
        share.whole,
    )


@register.simple_tag
def person_cell(person: Person, named: bool, full: bool = False) -> SafeString:
    """A person's avatar and name, or the pseudonym; `full` adds pseudonym and address to the name. Not a template, for the reason of
    `share_cell`."""
    name = person.shown(named)
    address = f" · {person.user.email}" if person.user.name else ""
    address += "" if person.user.verified else " · address not verified"
    address = "" if person.user.erased else address
    return format_html(
        '<div class="row nowrap gap-2"><span class="avatar" aria-hidden="true">{}</span><div class="person">'
        '<span class="strong">{}</span>{}{}{}</div></div>',
        initials(name),
        name,
        format_html(' <span class="chip" data-tone="warn">{}paused</span>', icon("pause")) if person.paused else "",
        format_html(' <span class="chip">{}</span>', "left") if not person.role else "",
        format_html('<div class="small muted">{}{}</div>', person.label, address) if named and full else "",
    )


@register.simple_tag
def drift(lines: dict[str, FigureLine]) -> SafeString | str:
    """Two lines over time: the share of answers equal to others' (0 to 1) and the median seconds (0 to the largest)."""
    if not lines:
        return format_html('<span class="missing">{}</span>', "–")
    words = "; ".join(
        f"{NAMES[name]} from {WORDS[name](line.first)} to {WORDS[name](line.last)}" for name, line in lines.items()
    )
    drawn = "".join(f'<polyline data-line="{name}" points="{_line(line.heights)}"/>' for name, line in lines.items())
    return format_html(
        '<svg class="drift" viewBox="0 0 96 24" width="96" height="24" role="img" aria-label="{0}"><title>{0}</title>{1}</svg>',
        words,
        mark_safe(drawn),  # noqa: S308  our own words and numbers
    )


def _line(heights: list[int]) -> str:
    return " ".join(map(",".join, zip(_across(len(heights)), map(DOWN.__getitem__, heights), strict=True)))


@cache
def _across(count: int) -> list[str]:
    """The horizontal positions of the points of a line with this many points."""
    return [f"{2 + place * 92 / (count - 1):.1f}" for place in range(count)]


@register.filter
def at(mapping: dict[str, Any], key: str) -> Any:
    """`mapping[key]`, or None: for errors at a path and labels by name."""
    return mapping.get(key) if mapping else None


@register.filter
def passage(reason: dict[str, Any], responses: list[Any]) -> str:
    """The words of a response that a reason is linked to; "" if it is linked to none."""
    text = next((each.text for each in responses or () if each.id == reason.get("response")), "")
    return "" if reason.get("start") is None else text[reason["start"] : reason["end"]]


@register.filter
def under(path: str, index: int) -> bool:
    """Whether an error's path lies in the scale at `index`."""
    return path.startswith(f"settings.scales.{index}.") or path == f"settings.scales.{index}"


register.filter("subject_words", subject_words)


@register.filter
def preference_words(content: dict[str, Any], subject: dict[str, Any]) -> str:
    """A pairwise answer as a sentence that names the side by its id."""
    return KINDS["pairwise"].words(content, subject)


@register.filter
def dimension_words(strength: int | None, subject: dict[str, Any]) -> str:
    """A strength on one dimension, in the same words as `preference_words`."""
    return "–" if strength is None else preference_words({"strength": strength}, subject)


@register.simple_tag
def known_words(kind: str, content: dict[str, Any] | None, subject: dict[str, Any]) -> str:
    """A known answer in few words."""
    return KINDS[kind].words(content, subject) if content else "–"


@register.simple_tag
def answer_template(kind: str) -> str:
    """The template that draws an answer of this kind."""
    return KINDS[kind].template


@register.simple_tag
def answer_facts(kind: str, content: dict[str, Any], subject: dict[str, Any]) -> list[tuple[str, str]]:
    """An answer as (name, words) pairs, for kinds without their own template."""
    return KINDS[kind].facts(content, subject)


@register.simple_tag
def task_state(task: Task) -> SafeString:
    """The state of a task, as a shape and a word."""
    if task.overlap is None:
        shape, word, name = icon("award"), "Gold", "gold"
    elif task.completed_at:
        shape, word, name = icon("circle-check"), "Complete", "finished"
    elif task.taken:
        shape, word, name = icon("circle-dot"), "In work", "open"
    else:
        shape, word, name = icon("circle-dashed"), "Untouched", "draft"
    return format_html('<span class="state" data-state="{}">{}{}</span>', name, shape, word)
