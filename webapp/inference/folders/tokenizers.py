"""Whether a model's folder still has the tokenizer that its weights were trained with.

With another tokenizer every text is read wrongly, and a run would notice it only after it has loaded the model.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trainer import files
from trainer.contracts import ModelFile
from trainer.contracts.plurals import with_noun

from ..models import RegisteredModel
from .stored import missing_folder

FILES = ("added_tokens.json", "merges.txt", "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
"""The files that decide which numbers a text becomes; templates and settings may be changed."""
FACT = "tokenizer"
MAX_JSON_BYTES = 20_000_000


def digest(folder: Path) -> str:
    """SHA-256, hexadecimal, over the tokenizer's files; empty if there are none. Raises OSError."""
    return _over((name, files.digest_of(folder / name)) for name in FILES if (folder / name).is_file())


def digest_of(files: Iterable[ModelFile]) -> str:
    """The digest of a tokenizer, from files whose own digests are known."""
    return _over(sorted((file.path, file.digest) for file in files if file.path in FILES))


def _over(found: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"{digest}  {name}\n" for name, digest in found)
    return hashlib.sha256(lines.encode()).hexdigest() if lines else ""


def problem(folder: Path, rows: object) -> str:
    """The reason why the tokenizer of `folder` does not fit weights with this many `rows`; empty if it may fit.

    A tokenizer that is too large is not read here; the run looks at it when it loads the model. Raises OSError, and ValueError for a
    file that is not JSON, or is nested too deep.
    """
    file = folder / "tokenizer.json"
    if not isinstance(rows, int) or not file.is_file() or file.stat().st_size > MAX_JSON_BYTES:
        return ""
    tokens = _tokens(_told(file))
    if tokens <= rows:
        return ""
    return f"its tokenizer is another model's: it has {with_noun(tokens, 'tokens')}, and the weights know {rows:,}"


def _told(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(str(error)) from error


def speaks_otherwise(teacher: RegisteredModel, model: RegisteredModel) -> str:
    """The reason why `teacher` cannot give log-probabilities for the tokens of `model`: it has other tokens. Empty if it can, or if the
    folders do not show it; the run then looks when it has loaded both."""
    theirs, ours = _lies(teacher), _lies(model)
    try:
        if theirs is None or ours is None or digest(theirs) == digest(ours):
            return ""
        spoken, heard = _vocabulary(theirs), _vocabulary(ours)
    except (OSError, ValueError):
        return ""
    if spoken is None or heard is None or spoken == heard:
        return ""
    apart = len(spoken.items() ^ heard.items())
    return (
        f"{teacher.name} has another vocabulary than {model.name}, so its log-probabilities are of other tokens: "
        f"{with_noun(len(spoken), 'tokens')} and {len(heard):,}, {with_noun(apart, 'entries')} differ. Choose a model of the same family"
    )


def _lies(model: RegisteredModel) -> Path | None:
    """The folder of the model, or of the whole model under an adapter; None if it is not on this machine."""
    row: RegisteredModel | None = model
    while row is not None and row.format == RegisteredModel.Format.PEFT:
        row = row.base
    if row is None or row.source == RegisteredModel.Source.HUB or not Path(row.path).is_dir():
        return None
    return Path(row.path)


def _vocabulary(folder: Path) -> dict[str, int] | None:
    """Each token with its number; None if they cannot be read here."""
    file = folder / "tokenizer.json"
    if not file.is_file() or file.stat().st_size > MAX_JSON_BYTES:
        return None
    told = _told(file)
    model, added = (told.get("model"), told.get("added_tokens", [])) if isinstance(told, dict) else (None, None)
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocab, dict) or not isinstance(added, list):
        return None
    entries = [*vocab.items(), *((each.get("content"), each.get("id")) for each in added if isinstance(each, dict))]
    usual = all(isinstance(text, str) and isinstance(number, int) for text, number in entries)
    return dict(entries) if usual else None


def _tokens(told: Any) -> int:
    """The count of numbers that the tokenizer can give: one more than the largest number of a token, added tokens included."""
    model, added = (told.get("model"), told.get("added_tokens")) if isinstance(told, dict) else (None, None)
    vocab = model.get("vocab") if isinstance(model, dict) else None
    numbers = [each.get("id") for each in added if isinstance(each, dict)] if isinstance(added, list) else []
    if isinstance(vocab, dict):
        numbers += vocab.values()
    most = max((number for number in numbers if isinstance(number, int)), default=-1) + 1
    return max(most, len(vocab) if isinstance(vocab, list) else 0)


def unloadable(model: RegisteredModel) -> str:
    """The reason why no process can load the model, as far as its folders show: they are gone, or the tokenizer is another model's."""
    gone = missing_folder(model)
    return f"the files of {model.name} are gone: there is no folder {gone}" if gone else changed(model)


def changed(model: RegisteredModel) -> str:
    """The reason why the folders that are loaded for `model` no longer have its tokenizer. Empty if they have it, if no digest was
    recorded, or if they are on another machine."""
    row: RegisteredModel | None = model
    while row is not None:
        if row.source != RegisteredModel.Source.HUB and (why := _changed(row)):
            return why
        row = row.base if row.format == RegisteredModel.Format.PEFT else None
    return ""


def _changed(row: RegisteredModel) -> str:
    recorded, folder = row.facts.get(FACT), Path(row.path)
    try:
        if recorded and folder.is_dir() and digest(folder) != recorded:
            since = "trained" if row.source == RegisteredModel.Source.RUN else "registered"
            return f"the tokenizer in the folder of {row.name} is another than when it was {since}; put that one back"
        return "" if recorded else _incompatibility(row, folder)
    except (OSError, ValueError) as error:
        return f"the tokenizer of {row.name} cannot be read: {error}"


def _incompatibility(row: RegisteredModel, folder: Path) -> str:
    why = problem(folder, row.facts.get("vocab_size"))
    return f"{row.name} cannot be loaded: {why}" if why else ""
