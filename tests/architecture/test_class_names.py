"""A class name is unique in the program unless a reader expects the twin.

A search for `class Answer` should find one class. If a framework looks for the name (`Meta`, `Command`), the twin is expected.
`SHARED` is the number of names that several classes have today: lower it when you rename one, never raise it.
"""

import subprocess
from collections import defaultdict
from pathlib import Path

from tests.architecture import sources

ROOT = Path(__file__).parents[2]
PROGRAM = ("webapp", "trainer", "workers", "benchmarks", "scripts", "demo")
# a framework looks for these names, inside another class or in a module of a known name
EXPECTED = {"Command", "Config", "Kind", "Media", "Meta", "Migration", "State"}
SHARED = 18


def shared_names() -> dict[str, list[str]]:
    """Each name that several classes have, with the places of the classes."""
    listed = subprocess.run(["git", "ls-files", "-z", *PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    places: dict[str, list[str]] = defaultdict(list)
    for file in filter(None, listed.stdout.split("\0")):
        if not file.endswith(".py") or not (ROOT / file).exists():
            continue
        for line, name in sources.read(ROOT / file).classes:
            if name not in EXPECTED:
                places[name].append(f"{file}:{line}")
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_more_classes_share_a_name():
    found = shared_names()
    told = "\n".join(f"{name}: {', '.join(places)}" for name, places in sorted(found.items()))
    assert len(found) <= SHARED, f"{len(found)} names are shared, at most {SHARED} may be:\n{told}"
