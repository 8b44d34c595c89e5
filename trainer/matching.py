"""`python -m trainer match`: which items of independent lists mean the same. JSON Lines in, JSON Lines out.

In, one task a line: {"id": any, "lists": [[text, ...], ...]}. Out, first {"matcher": name, "threshold": t}, then for each
task in turn {"id": ..., "groups": [[[list, index], ...], ...]}, where every item is in exactly one group.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from trainer.rewards.alignment import group


def match(arguments: list[str]) -> int:
    """0: done; 1: the model is not there; 2: the input cannot be read. Reasons go to stderr."""
    if arguments:
        print("python -m trainer match takes no arguments; it reads JSON Lines from its input", file=sys.stderr)
        return 2
    try:
        tasks = list(_read(sys.stdin))
    except (ValueError, KeyError, TypeError) as error:
        print(f"the input cannot be read: {error!r}", file=sys.stderr)
        return 2
    from trainer.inference.embeddings import NAME, THRESHOLD, Embedder
    from trainer.inference.models import ModelInvalid

    try:
        embed = Embedder()
    except (ModelInvalid, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({"matcher": NAME, "threshold": THRESHOLD}))
    for name, lists in tasks:
        print(json.dumps({"id": name, "groups": _groups(lists, embed, THRESHOLD)}))
    return 0


def _read(lines: TextIO) -> Iterator[tuple[Any, list[list[str]]]]:
    for line in filter(str.strip, lines):
        task = json.loads(line)
        yield task["id"], [[str(text) for text in each] for each in task["lists"]]


def _groups(lists: list[list[str]], embed: Any, threshold: float) -> list[list[list[int]]]:
    places = [(which, index) for which, texts in enumerate(lists) for index in range(len(texts))]
    vectors = embed([lists[which][index] for which, index in places]).double().numpy()
    found: Iterable[list[int]] = group(vectors @ vectors.T, [which for which, _ in places], threshold)
    return [[list(places[item]) for item in members] for members in found]
