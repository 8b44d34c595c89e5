"""Template tags every page may use: icons, navigation, times, numbers, states."""

import json
import re
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django import forms, template
from django.forms import BoundField
from django.template.context import RequestContext
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import escape, format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from trainer.contracts import plurals as words
from webapp.core.background.priorities import Priority
from webapp.core.pages import exported
from webapp.core.pages.scripts import modules
from webapp.core.text.durations import duration
from webapp.version import VERSION

register = template.Library()
register.filter("duration", duration)


@register.simple_tag
def version() -> str:
    """The version of this installation."""
    return VERSION


@register.simple_tag
def query(**parameters: object) -> str:
    """The query string of these parameters, as in `?{% query field=field.key names=named|yesno:"1," %}`; empty ones are left out."""
    return urlencode({name: str(value) for name, value in parameters.items() if value not in (None, "")})


# The rail, from top to bottom: path, words, icon. Annotators see only those marked for everybody.
SMALLEST_WRITTEN = 1e-6  # a smaller number is shown as a power
EVERYBODY = "annotator"
NAVIGATION = (
    {"path": "/", "label": "Home", "icon": "house", "role": EVERYBODY},
    {"path": "/datasets", "label": "Datasets", "icon": "database", "role": "reviewer"},
    {"path": "/projects", "label": "Projects", "icon": "messages-square", "role": "reviewer"},
    {"path": "/judges", "label": "Judges", "icon": "scale", "role": "reviewer", "also": "/verdicts"},
    {"path": "/experiments", "label": "Experiments", "icon": "flask-conical", "role": "reviewer", "also": "/runs"},
    {
        "path": "/evaluations",
        "label": "Evaluations",
        "icon": "clipboard-check",
        "role": "reviewer",
        "also": "/leaderboards",
    },
    {"path": "/reports", "label": "Reports", "icon": "file-text", "role": "reviewer"},
    {"path": "/costs", "label": "Costs", "icon": "calculator", "role": "reviewer"},
    {"path": "/models", "label": "Models", "icon": "box", "role": "reviewer"},
    {"path": "/try", "label": "Try it", "icon": "columns-3", "role": "researcher"},
    {"path": "/verifiers", "label": "Verifiers", "icon": "list-checks", "role": "reviewer"},
    {"path": "/objectives", "label": "Objectives", "icon": "sigma", "role": "reviewer"},
)

# The shape beside each state and tone; colour is never alone.
STATES = {
    "queued": {"icon": "clock"},
    "starting": {"icon": "loader-circle"},
    "blocked": {"icon": "hourglass"},
    "pausing": {"icon": "loader-circle"},
    "paused": {"icon": "circle-pause"},
    "stopping": {"icon": "loader-circle"},
    "stopped": {"icon": "circle-stop"},
    "finished": {"icon": "circle-check"},
    "fruitless": {"icon": "triangle-alert"},
    "failed": {"icon": "circle-x"},
    "cancelled": {"icon": "ban"},
    "draft": {"icon": "circle-dashed"},
    "frozen": {"icon": "snowflake"},
    "open": {"icon": "circle-dot"},
    "closed": {"icon": "archive"},
}
TONES = {
    "good": {"icon": "circle-check"},
    "warn": {"icon": "triangle-alert"},
    "bad": {"icon": "octagon-alert"},
    "info": {"icon": "info"},
}


@register.simple_tag
def preload(*scripts: str) -> SafeString:
    """Links to the modules of these scripts, which the browser then fetches at once."""
    links = ((static(each),) for each in modules(*scripts))
    return format_html_join("\n", '<link rel="modulepreload" href="{}">', links)


@register.simple_tag
@lru_cache(1_000, typed=True)  # a page has dozens; a text that is marked as safe is not the same as one that is not
def icon(name: str, label: str = "", size: str = "") -> SafeString:
    """The icon `name` of lucide. Silent beside words; with `label` it speaks for itself."""
    href = f"{static('vendor/icons.svg')}#{name}"
    css = f"icon {size}".strip()
    if label:
        return format_html('<svg class="{}" role="img" aria-label="{}"><use href="{}"></use></svg>', css, label, href)
    return format_html('<svg class="{}" aria-hidden="true"><use href="{}"></use></svg>', css, href)


@register.simple_tag
def drawn_icon(name: str) -> SafeString:
    """Draws an icon for a page that is downloaded, beside which there is no file of icons."""
    return exported.icon(name)


@register.simple_tag
def tone_icon(tone: str) -> SafeString:
    """The shape beside a message of this tone, so that colour is never alone."""
    return icon(TONES.get(tone, TONES["info"])["icon"])


@register.filter
def tone(level_tag: str) -> str:
    """Tone of a Django message level: error -> bad, warning -> warn, success -> good, else info."""
    return {"error": "bad", "warning": "warn", "success": "good"}.get(level_tag.split(" ")[-1], "info")


@register.simple_tag
def state(name: str, label: str = "") -> SafeString:
    """`<span class="state">` for a run, an import or a version; see STATES for the names."""
    known = STATES.get(name)
    shape = icon(known["icon"]) if known else mark_safe('<span class="live-dot"></span>')  # noqa: S308 - a constant
    return format_html('<span class="state" data-state="{}">{}{}</span>', name, shape, label or name.capitalize())


@register.simple_tag
def ago(moment: datetime | None, missing: str = "never") -> SafeString:
    """A time that reads "3 minutes ago"; exact on hover. times.js keeps it moving."""
    if moment is None:
        return format_html('<span class="missing">{}</span>', missing)
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" data-ago title="{}">{}</time>',
        moment.isoformat(timespec="seconds"),
        f"{local:%Y-%m-%d %H:%M:%S %Z}",
        f"{local:%Y-%m-%d %H:%M}",
    )


@register.simple_tag
def when(moment: datetime | None, exact: object) -> SafeString:
    """A time like `ago` if it may be exact; else only its day, for actions of people under pseudonyms."""
    if exact or moment is None:
        return ago(moment)
    local = timezone.localtime(moment)
    return format_html('<time datetime="{}">{}</time>', f"{local:%Y-%m-%d}", f"{local:%Y-%m-%d}")


@register.filter
def figure(value: float | int | None, digits: int = 3) -> str:
    """A number for a table: thousands separated, `digits` decimals, or two significant digits if it is smaller than these show; as a
    power only below a millionth; a dash if it is missing."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= 10**-digits or value == 0:
        return f"{value:,.{digits}f}"
    short = f"{value:.1e}"
    return f"{Decimal(short):f}" if abs(value) >= SMALLEST_WRITTEN else short


@register.filter
def with_noun(count: int | None, plural: str) -> str:
    """1 pair, 1,200 pairs; a dash if the number is missing."""
    return "–" if not isinstance(count, int) else words.with_noun(count, plural)


@register.filter
def noun(plural: str, count: int) -> str:
    """ "pairs" in the form that follows the number."""
    return words.noun(count, plural)


@register.filter
def percent(fraction: float | None) -> str:
    """0.634 -> 63%; a dash if it is missing."""
    return "–" if fraction is None else f"{fraction:.0%}"


@register.filter
def keyed(path: str) -> SafeString:
    """A dotted key that may be broken after its dots and underscores, and nowhere else."""
    return mark_safe(re.sub(r"([._])", r"\1<wbr>", escape(path)))  # noqa: S308  escaped


@register.filter
def ticks(text: str) -> SafeString:
    """Help text with what stands between backticks set as code."""
    parts = text.split("`")
    shown = [format_html("<code>{}</code>", part) if i % 2 else escape(part) for i, part in enumerate(parts)]
    return format_html_join("", "{}", ((part,) for part in shown))


@register.filter
def as_json(value: Any) -> str:
    """A setting as JSON writes it: true, ["a", "b"]; for people, not for scripts."""
    return json.dumps(value, ensure_ascii=False)


@register.filter
def raised(priority: int) -> str:
    """The next higher priority, as it is sent."""
    return Priority(priority + 1).name.lower()


@register.filter
def lowered(priority: int) -> str:
    return Priority(priority - 1).name.lower()


@register.filter
def initials(name: str) -> str:
    """Two letters for an avatar: of the first and last word, or the first two of an address; a number stays whole."""
    words = name.split("@")[0].replace(".", " ").replace("_", " ").split()
    last = words[-1] if words and words[-1].isdecimal() else "".join(words[-1:])[:1]
    return (words[0][0] + last if len(words) > 1 else "".join(words)[:2]).upper()


def _kind(widget: forms.Widget) -> str:
    """The class of this widget; a checkbox has none."""
    if isinstance(widget, forms.CheckboxInput):
        return ""
    if isinstance(widget, forms.Textarea):
        return "textarea"
    return "select" if isinstance(widget, forms.Select) else "input"


@register.filter
def control(field: BoundField) -> SafeString:
    """A form field's widget with its class, its help and its error tied to it for screen readers."""
    widget = field.field.widget
    attributes: dict[str, str | bool] = {"class": f"{_kind(widget)} {widget.attrs.get('class', '')}".strip()}
    described = [f"{field.auto_id}_help"] if field.help_text else []
    if field.errors:
        attributes["aria-invalid"] = "true"
        described.append(f"{field.auto_id}_error")
    if described:
        attributes["aria-describedby"] = " ".join(described)
    return field.as_widget(attrs=attributes)


@register.simple_tag(takes_context=True)
def navigation(context: RequestContext) -> list[dict[str, Any]]:
    """Items of the rail that this membership may open, the current one marked."""
    request = context["request"]
    membership = getattr(request, "membership", None)
    if membership is None:
        return []
    here = request.path
    return [
        {**item, "current": here == "/" if item["path"] == "/" else _under(here, item["path"], item.get("also"))}
        for item in NAVIGATION
        if membership.may(item["role"])
    ]


@register.simple_tag(takes_context=True)
def may(context: RequestContext, role: str) -> bool:
    """Whether the current membership carries the rights of `role`: for showing links, never for allowing anything."""
    membership = getattr(context["request"], "membership", None)
    return bool(membership and membership.may(role))


@register.simple_tag(takes_context=True)
def current(context: RequestContext, path: str) -> SafeString:
    """`aria-current="page"` if the page lies at or under `path`."""
    return mark_safe('aria-current="page"' if _under(context["request"].path, path) else "")  # noqa: S308 - constants


def _under(here: str, *paths: str | None) -> bool:
    return any(here == path or here.startswith(path.rstrip("/") + "/") for path in paths if path)


@register.simple_tag(takes_context=True)
def memberships(context: RequestContext) -> list[Any]:
    """All workspaces of the signed-in person, by name, for the switcher."""
    mine = getattr(context["request"], "memberships", ())
    return sorted(mine, key=lambda each: each.workspace.name.casefold())
