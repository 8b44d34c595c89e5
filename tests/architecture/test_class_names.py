"""A class name is unique in the program unless a reader expects the twin.

Whoever searches for `class Answer` should find one class. Where a framework looks for the name (`Meta`, `Command`) the twin is expected.
`SHARED` is the number of names that several classes have today: lower it when you rename one, never raise it.
"""

import ast
import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = ("webapp", "trainer", "workers", "benchmarks", "scripts", "demo")
# a framework looks for these names, inside another class or in a module of a known name
EXPECTED = {"Command", "Config", "Kind", "Media", "Meta", "Migration", "State"}
SHARED = 31


def shared_names() -> dict[str, list[str]]:
    """Each name that several classes have, with where they stand."""
    listed = subprocess.run(["git", "ls-files", "-z", *PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    places: dict[str, list[str]] = defaultdict(list)
    for file in filter(None, listed.stdout.split("\0")):
        if not file.endswith(".py") or not (ROOT / file).exists():
            continue
        for node in ast.walk(ast.parse((ROOT / file).read_text())):
            if isinstance(node, ast.ClassDef) and node.name not in EXPECTED:
                places[node.name].append(f"{file}:{node.lineno}")
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_more_classes_share_a_name():
    found = shared_names()
    told = "\n".join(f"{name}: {', '.join(places)}" for name, places in sorted(found.items()))
    assert len(found) <= SHARED, f"{len(found)} names are shared, at most {SHARED} may be:\n{told}"
