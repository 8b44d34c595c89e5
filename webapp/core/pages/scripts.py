"""Lists the modules that a page loads."""

import re
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parents[2] / "static"
IMPORT = re.compile(r"""^(?:import|export)\b[^"]*?"(\.[^"]+)";""", re.MULTILINE)


@cache
def modules(*scripts: str) -> tuple[str, ...]:
    """The scripts and every module that they import, so that the browser fetches them at once and not one after another."""
    found: set[Path] = set()
    ahead = [STATIC / script for script in scripts]
    while ahead:
        path = ahead.pop().resolve()
        if path not in found and path.exists():
            found.add(path)
            ahead += [path.parent / name for name in IMPORT.findall(path.read_text())]
    return tuple(sorted(path.relative_to(STATIC).as_posix() for path in found))
