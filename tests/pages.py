"""The text that a page shows, and the templates of all pages."""

from pathlib import Path
from typing import Any

TEMPLATES = Path(__file__).resolve().parents[1] / "templates"


def page_html(response: Any) -> str:
    """The HTML of a response on one line, because line breaks in a template have no meaning."""
    return " ".join(response.content.decode().split())


def compile_templates() -> None:
    """Compiles all templates. Processes that are forked from this one then need not do it."""
    from django.template.loader import get_template

    for path in sorted(TEMPLATES.rglob("*.html")):
        get_template(path.relative_to(TEMPLATES).as_posix())
