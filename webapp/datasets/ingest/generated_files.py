"""Imports whose file nobody sends: a worker writes it first, from rows of another app, and then reads it like any other.

A worker that dies meanwhile leaves no file, so that the next one begins again.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..models import ImportJob

Heard = Callable[[int], None]
"""Told how many rows were looked at so far; it may raise, and then nothing is left."""
Source = Callable[[ImportJob, Heard], tuple[Iterator[str], dict[str, Any]]]
"""(lines of the file, what else there is to say of them: it joins `origin`). Raises Problem if there is nothing."""
SOURCES: dict[str, Source] = {}
"""`origin["from"]` -> who gathers it; other apps enter theirs."""


def fill(job: ImportJob, heard: Heard) -> None:
    """Writes the file of a job that has an origin, and notes in that what it holds. Raises what its source raises."""
    path = Path(job.file_path)
    if not job.origin or path.exists():
        return
    lines, found = SOURCES[job.origin["from"]](job, heard)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    job.origin = job.origin | found
    job.save(update_fields=["origin"])
    part.replace(path)  # last: what is there is whole, and what it holds is known
