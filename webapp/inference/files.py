"""The files of a model that a run has left behind: listed, read and sent. Other models lie where they were registered."""

from pathlib import Path
from typing import Any

from webapp.core.archive import Download, Gone, ascii_name, of_folder
from webapp.core.problems import Conflict

from .models import RegisteredModel

CARD = "README.md"
MAX_CARD_BYTES = 200_000


def is_there(model: RegisteredModel) -> bool | None:
    """Whether its folder is; None for a model that no run has made, whose place this server may not see."""
    return Path(model.path).is_dir() if model.source == RegisteredModel.Source.RUN else None


def listed(model: RegisteredModel) -> list[dict[str, Any]]:
    """`path`, `bytes` and `digest` of each file, as the run told them. Needs `artifact` loaded with the row."""
    artifact = getattr(model, "artifact", None)
    return list(artifact.model["files"]) if artifact is not None and artifact.model else []


def download(model: RegisteredModel) -> Download:
    """The folder as a tar. Raises Conflict for a model that no run has made, Gone where the folder is not there."""
    if model.source != RegisteredModel.Source.RUN:
        raise Conflict("This model was not trained here: take it from where it was registered.", code="not_here")
    if not Path(model.path).is_dir():
        raise Gone(f"The files of {model.name} are gone: there is no folder {model.path}.")
    return of_folder(Path(model.path), ascii_name(model.name))


def card(model: RegisteredModel) -> str:
    """Its README.md without the header for hubs; empty where there is none."""
    if model.source == RegisteredModel.Source.HUB:
        return ""
    path = Path(model.path) / CARD
    try:
        if path.is_symlink() or path.stat().st_size > MAX_CARD_BYTES:
            return ""
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    if text.startswith("---\n"):
        text = text.partition("\n---\n")[2]
    return text.strip()
