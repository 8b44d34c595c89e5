"""The file of an export: a zip of JSON Lines, and `index.html`, which says what is in it and what is not."""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from django.template.loader import render_to_string
from django.utils import timezone

from webapp.accounts.models import User

from .collecting import DataPart, parts
from .data_inventory import HOLDINGS


@dataclass(frozen=True)
class Written:
    """One file of the zip."""

    name: str
    about: str
    erasure: str
    rows: int


def write(user: User, path: Path) -> int:
    """Writes the zip to `path` and returns the number of rows in it. Memory stays flat however many answers there are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        files = [_add(archive, part) for part in parts(user)]
        left_out = [(each.model, each.about) for each in HOLDINGS if not each.file]
        context = {"person": user, "files": files, "left_out": left_out, "at": timezone.now()}
        archive.writestr("index.html", render_to_string("personal_data/index.html", context))
    return sum(each.rows for each in files)


def _add(archive: ZipFile, part: DataPart) -> Written:
    name, rows = f"{part.file}.jsonl", 0
    with archive.open(name, "w") as file:
        for row in part.rows:
            file.write(json.dumps(row, ensure_ascii=False, default=_plain).encode() + b"\n")
            rows += 1
    return Written(name, part.about, part.erasure, rows)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)
