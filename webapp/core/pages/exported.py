"""The style of a page that is downloaded: it stands in the file, which loads nothing."""

from pathlib import Path

from django.conf import settings


def style(name: str) -> str:
    """The style sheet that all downloaded pages share, followed by the style sheet `name`."""
    folder = Path(settings.BASE_DIR) / "webapp" / "static" / "css"
    return "\n".join((folder / sheet).read_text() for sheet in ("exported.css", name))
