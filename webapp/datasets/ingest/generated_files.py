"""Imports whose file nobody sends: a worker first writes it from rows of another app, and then reads it like any other file.

If a worker dies meanwhile, it leaves no file, and the next worker begins again.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..models import ImportJob

Heard = Callable[[int], None]
"""Called with the number of rows that were read so far. It may raise, and then no file is left."""
Source = Callable[[ImportJob, Heard], tuple[Iterator[str], dict[str, Any]]]
"""(lines of the file, further facts about them, which join `origin`). Raises Problem if there are no lines."""
SOURCES: dict[str, Source] = {}
"""`origin["from"]` -> the function that gathers the rows; other apps enter theirs."""


def fill(job: ImportJob, heard: Heard) -> None:
    """Writes the file of a job that has an origin, and notes in the origin what the file holds. Raises the errors of its source."""
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
    part.replace(path)  # last, so that a file that exists is complete and described
