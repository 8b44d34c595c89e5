"""Three sets of human preferences of the shared data as examples, and the examples that a seed trains on and holds out.

Examples of one `group` are on one side: a debate (both stances), an instruction, an opening question. Groups are dealt
into four folds, and seed s holds out fold s. Settings that depend on results (a learning rate) are chosen on seed 3.
"""

import csv
import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.contracts import Example, Message, Preference, Response, jsonlines
from trainer.contracts.pairs import ORDERED

FOLDS = 4
_UKP = tuple(f"ukpconvarg1/{name}" for name in ("arguments.jsonl", "pairs_with_reasons.jsonl.gz", "strict_labels.tsv"))
_TURN = re.compile(r"\n\n(Human|Assistant): ")
_ROLES: dict[str, Any] = {"Human": "user", "Assistant": "assistant"}
_FIRST, _TIE, _SECOND = -int(ORDERED), 0, int(ORDERED)


@dataclass(frozen=True)
class PreferenceSet:
    """`heldout` says as text what a fold holds out; `read` gives the examples and how many rows were left out, from
    `files` below the folder of the sets.
    """

    title: str
    heldout: str
    files: tuple[str, ...]
    read: Callable[[Path], tuple[list[Example], int]]


def lacking(names: Iterable[str], shared: Path) -> list[str]:
    """The files of these sets that are missing in the folder."""
    return [file for name in names for file in SETS[name].files if not (shared / file).is_file()]


@dataclass(frozen=True)
class TakenExamples:
    """Examples of one seed, those of the training split first, each split in an order drawn from the seed."""

    examples: list[Example]
    left_out: int

    def of(self, split: str) -> list[Example]:
        return [example for example in self.examples if example.split == split]


def take(
    name: str, shared: Path, seed: int, pairs: int, heldout: int, fits: Callable[[Example], bool]
) -> TakenExamples:
    """Takes at most `pairs` and `heldout` pairs, among those that `fits` accepts."""
    found, left_out = SETS[name].read(shared)
    draw = random.Random(0)  # noqa: S311 - the folds are the same for every seed
    groups = sorted({example.group for example in found})
    draw.shuffle(groups)
    held = set(groups[seed % FOLDS :: FOLDS])
    random.Random(seed).shuffle(found)  # noqa: S311 - data, not secrecy
    train = _first(found, pairs, lambda example: example.group not in held and fits(example), "train")
    evaluated = _first(found, heldout, lambda example: example.group in held and fits(example), "heldout")
    return TakenExamples(train + evaluated, left_out)


def _first(found: Sequence[Example], most: int, wanted: Callable[[Example], bool], split: str) -> list[Example]:
    taken: list[Example] = []
    for example in found:
        if len(taken) == most:
            break
        if wanted(example):
            taken.append(example.model_copy(update={"split": split}))
    return taken


def _example(
    key: str, group: str, prompt: Sequence[Message], answers: tuple[str, str], votes: Sequence[int], domain: str = ""
) -> Example:
    responses = tuple(Response(id=name, text=text) for name, text in zip("ab", answers, strict=True))
    said = tuple(Preference(a="a", b="b", strength=vote, rater=f"r{n}") for n, vote in enumerate(votes))
    return Example(key=key, group=group, prompt=tuple(prompt), domain=domain, responses=responses, preferences=said)


def _ukp(shared: Path) -> tuple[list[Example], int]:
    """Pairs of the cleaned labels (UKPConvArg1Strict) with the votes of all their raters, where the plain majority of the
    votes is that label too: the label was made from votes weighted by competence."""
    folder = shared / "ukpconvarg1"
    arguments = {row["id"]: row for row in jsonlines.rows((folder / "arguments.jsonl").read_text())}
    votes: dict[str, list[int]] = {}
    strength = {"a1": _FIRST, "equal": _TIE, "a2": _SECOND}
    with gzip.open(folder / "pairs_with_reasons.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            votes[row["id"]] = [strength[each["value"]] for each in row["annotations"]]
    found, rows = [], 0
    with (folder / "strict_labels.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            rows += 1
            first, second = (arguments[name] for name in row["id"].split("_"))
            asked = Message(role="user", content=f"{first['debate_title']}: argue for “{first['stance']}”.")
            said = votes[row["id"]]
            counts = Counter(said)
            if row["label"] == ("a1" if counts[_FIRST] > counts[_SECOND] else "a2") and (
                counts[_FIRST] != counts[_SECOND] and first["text"] != second["text"]
            ):
                debate = row["topic"].split("_")[0]
                found.append(
                    _example(row["id"], debate, [asked], (first["text"], second["text"]), said, row["topic"][:50])
                )
    return found, rows - len(found)


def _pandalm(shared: Path) -> tuple[list[Example], int]:
    """Pairs on which two of the three people agree; a third of them are ties or splits of three."""
    rows = json.loads((shared / "pandalm" / "testset-v1.json").read_text())
    strength = {1: _FIRST, 0: _TIE, 2: _SECOND}
    found = []
    for row in rows:
        asked = f"{row['instruction']}\n\n{row['input']}".strip()
        votes = [strength[row[f"annotator{n}"]] for n in (1, 2, 3)]
        answers = (str(row["response1"]), str(row["response2"]))  # a few are numbers or truth values
        [(label, most)] = Counter(votes).most_common(1)
        if most > 1 and label != _TIE and answers[0] != answers[1] and all(answers):
            prompt = [Message(role="user", content=asked)]
            found.append(_example(str(row["idx"]), asked, prompt, answers, votes, row["motivation_app"]))
    return found, len(rows) - len(found)


def _harmless(shared: Path) -> tuple[list[Example], int]:
    """The file always names the chosen one first; here every other example has it second."""
    with gzip.open(shared / "hh_rlhf" / "harmless-base-test.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    found = []
    for number, row in enumerate(rows):
        chosen, rejected = _conversation(row["chosen"]), _conversation(row["rejected"])
        same = bool(chosen) and chosen[:-1] == rejected[:-1] and chosen[-1].role == "assistant"
        answers = (chosen[-1].content, rejected[-1].content) if same else ("", "")
        if not all(answers) or answers[0] == answers[1] or chosen[0].role != "user":
            continue
        first = number % 2 == 0
        found.append(
            _example(
                str(number),
                chosen[0].content,
                chosen[:-1],
                answers if first else answers[::-1],
                [_FIRST if first else _SECOND],
            )
        )
    return found, len(rows) - len(found)


def _conversation(text: str) -> list[Message]:
    _, *parts = _TURN.split(text)
    return [Message(role=_ROLES[who], content=said.strip()) for who, said in zip(parts[::2], parts[1::2], strict=True)]


def shorter_than(tokens: int, measure: Callable[[Sequence[Message]], Collection[int]]) -> Callable[[Example], bool]:
    """Whether both conversations of an example have at most this many tokens."""

    def fits(example: Example) -> bool:
        return all(
            len(measure([*example.prompt, Message(role="assistant", content=response.text)])) <= tokens
            for response in example.responses
        )

    return fits


SETS = {
    "ukpconvarg1": PreferenceSet("UKPConvArg1, convincing arguments", "debates", _UKP, _ukp),
    "pandalm": PreferenceSet(
        "PandaLM's test set, people's labels", "instructions", ("pandalm/testset-v1.json",), _pandalm
    ),
    "harmless": PreferenceSet(
        "HH harmless pairs", "opening questions", ("hh_rlhf/harmless-base-test.jsonl.gz",), _harmless
    ),
}
