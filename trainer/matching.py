"""`python -m trainer match`: which items of independent lists mean the same. JSON Lines in, JSON Lines out.

In, one task a line: {"id": any, "lists": [[text, ...], ...]}, with "kind": "items" of rubrics (the default) or "reasons".
Out, first {"matcher": name}, then for each task in turn {"id": ..., "threshold": t, "groups": [[[list, index], ...], ...]},
where every item is in exactly one group.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from trainer.rewards.alignment import background, group


def match(arguments: list[str]) -> int:
    """Exit status 0: done; 1: the model is not installed; 2: the input cannot be read. Reasons go to stderr."""
    if arguments:
        print("python -m trainer match takes no arguments; it reads JSON Lines from its input", file=sys.stderr)
        return 2
    try:
        tasks = list(_read(sys.stdin))
    except (ValueError, KeyError, TypeError) as error:
        print(f"the input cannot be read: {error!r}", file=sys.stderr)
        return 2
    from trainer.inference.embeddings import NAME, Embedder
    from trainer.inference.models import ModelInvalid

    try:
        embed = Embedder()
    except (ModelInvalid, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({"matcher": NAME}), flush=True)
    for name, kind, lists in tasks:
        print(
            json.dumps({"id": name} | matched(lists, kind, embed)), flush=True
        )  # a program that waits gets the answer at once
    return 0


def _read(lines: TextIO) -> Iterator[tuple[Any, str, list[list[str]]]]:
    for line in filter(str.strip, lines):
        task = json.loads(line)
        kind = task.get("kind", "items")
        if kind not in ("items", "reasons"):
            raise ValueError(f"kind {kind!r} is neither items nor reasons")
        yield task["id"], kind, [[str(text) for text in each] for each in task["lists"]]


def matched(lists: Sequence[Sequence[str]], kind: str, embed: Any) -> dict[str, Any]:
    """The answer to one task: `{"threshold": t, "groups": [[[list, index], ...], ...]}`."""
    from trainer.inference.embeddings import BACKGROUND, LIFT

    places = [(which, index) for which, texts in enumerate(lists) for index in range(len(texts))]
    owners = [which for which, _ in places]
    vectors = embed([lists[which][index] for which, index in places]).double().numpy()
    similarity = vectors @ vectors.T
    common = background(similarity, owners)
    threshold = (BACKGROUND[kind] if common is None else common) + LIFT[kind]
    groups = [[list(places[item]) for item in members] for members in group(similarity, owners, threshold)]
    return {"threshold": round(threshold, 4), "groups": groups}
