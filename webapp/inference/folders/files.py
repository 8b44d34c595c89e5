"""The files of a model that a run has written: listed, read and sent. Other models lie where they were registered."""

import json
import logging
import re
from functools import partial
from pathlib import Path
from typing import Any

from django.core.cache import cache

from trainer.contracts import ModelFile
from webapp.core.problems import Conflict, Problem
from webapp.core.storage import artifact_store
from webapp.core.storage.archive import ArchiveFile, Download, Gone, ascii_name, of_entries, of_folder

from ..models import RegisteredModel
from . import stored

logger = logging.getLogger(__name__)

CARD = "README.md"
MAX_CARD_BYTES = 200_000
CARD_WITHIN_S = 3.0  # a page does not wait longer for it
CARD_KEPT_S = 86_400.0  # under the digest of its content
AWAY_S = 60.0


def is_there(model: RegisteredModel) -> bool | None:
    """Whether its files are there; None for a model that no run has made, because this server may not see its folder. If the row says
    that they lie in the artifact store, the row is believed."""
    if model.source != RegisteredModel.Source.RUN:
        return None
    return stored.placed(model) is not None or Path(model.path).is_dir()


def listed(model: RegisteredModel) -> list[dict[str, Any]]:
    """`path`, `bytes` and `digest` of each file, as the run reported them. Needs `artifact` loaded with the row."""
    artifact = getattr(model, "artifact", None)
    return list(artifact.model["files"]) if artifact is not None and artifact.model else []


def download(model: RegisteredModel) -> Download:
    """The folder as a tar. Raises Conflict for a model that no run has made, Gone if the folder is not there."""
    if model.source != RegisteredModel.Source.RUN:
        raise Conflict("This model was not trained here: take it from where it was registered.", code="not_here")
    if found := stored.to_read(model):
        return sent(found, ascii_name(model.name))
    if not Path(model.path).is_dir():
        raise Gone(f"The files of {model.name} are gone: there is no folder {model.path}.")
    return of_folder(Path(model.path), ascii_name(model.name))


def sent(found: stored.Placed, name: str) -> Download:
    """A folder of the artifact store as a tar. Each block is read from the store when it is sent."""
    entries = [
        ArchiveFile(file.path, file.bytes, source=partial(artifact_store.read, found.of(file), file))
        for file in found.files
    ]
    return of_entries(entries, name, found.mark)


def card(model: RegisteredModel) -> str:
    """The model's README.md without the header for hubs; empty if there is none, or if the storage does not answer."""
    if model.source == RegisteredModel.Source.HUB:
        return ""
    found = stored.to_read(model)
    text = _in_store(found) if found else _on_disk(Path(model.path) / CARD)
    if text.startswith("---\n"):
        text = text.partition("\n---\n")[2]
    return text.strip()


HEADING = "\n## Config\n"
CONFIG = re.compile(rf"{HEADING}\n*```json\n(.*?)\n```\s*\Z", re.DOTALL)


def card_parts(text: str) -> tuple[str, dict[str, Any]]:
    """A card as `trainer.model_card` writes it, without its last section, and the config in that section; another card as it is."""
    begins = text.rfind(HEADING)
    found = CONFIG.match(text, begins) if begins >= 0 else None
    try:
        config = json.loads(found[1]) if found else None
    except (ValueError, RecursionError):
        config = None
    return (text[: found.start()].rstrip(), config) if found and isinstance(config, dict) else (text, {})


def _on_disk(path: Path) -> str:
    try:
        if path.is_symlink() or path.stat().st_size > MAX_CARD_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _in_store(found: stored.Placed) -> str:
    file = found.named(CARD)
    if not file or file.bytes > MAX_CARD_BYTES:
        return ""
    key = f"card:{file.digest}"
    text = cache.get(key)
    if text is None:
        text, kept_s = _asked(found, file)
        cache.set(key, text, kept_s)
    return str(text)


def _asked(found: stored.Placed, file: ModelFile) -> tuple[str, float]:
    """The text, and how long it may be kept. Storage that does not answer is asked again after AWAY_S."""
    try:
        blocks = artifact_store.read(found.of(file), file, within_s=CARD_WITHIN_S)
        return b"".join(blocks).decode(errors="replace"), CARD_KEPT_S
    except Problem as problem:
        logger.warning("no card of %s: %s", found.place, problem)
        return "", AWAY_S
