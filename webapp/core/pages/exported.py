"""The style and the icons of a page that is downloaded: they stand in the file, which loads nothing."""

import re
from functools import cache
from pathlib import Path

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe

_SYMBOL = re.compile(r'<symbol id="([^"]+)" viewBox="([^"]+)">(.*?)</symbol>', re.DOTALL)


def style(name: str) -> str:
    """The style sheet that all downloaded pages share, followed by the style sheet `name`."""
    folder = _static() / "css"
    return "\n".join((folder / sheet).read_text() for sheet in ("exported.css", name))


def icon(name: str) -> SafeString:
    """The icon `name` of lucide, drawn where it stands; silent, because words stand beside it. Raises KeyError if there is none."""
    box, drawing = _icons()[name]
    return mark_safe(f'<svg class="icon" viewBox="{box}" aria-hidden="true">{drawing}</svg>')  # noqa: S308  a file of ours


@cache
def _icons() -> dict[str, tuple[str, str]]:
    text = (_static() / "vendor" / "icons.svg").read_text()
    return {name: (box, drawing) for name, box, drawing in _SYMBOL.findall(text)}


def _static() -> Path:
    return Path(settings.BASE_DIR) / "webapp" / "static"
