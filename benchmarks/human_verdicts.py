"""Human verdicts of the shared data as pairs of answers, of which people preferred one.

Ties and pairs without a majority are left out and counted: they do not say which answer is better.
"""

import csv
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainer.contracts import Message, jsonlines

Conversation = tuple[Message, ...]
_HHH = re.compile(
    r"###The instruction to evaluate:\n(.*)\n\n###Response to evaluate:\n(.*)\n\n###Score Rubrics:\n\[(.*?)\]", re.S
)


@dataclass(frozen=True)
class AnswerPair:
    """Two answers to one conversation; `better` is the place of the preferred one."""

    conversation: Conversation
    answers: tuple[str, str]
    better: int
    criterion: str

    @property
    def item(self) -> str:
        """The key of the question: pairs on the same question are not independent evidence."""
        return self.conversation[-1].content


@dataclass(frozen=True)
class VerdictData:
    """A data set: who judged, and how its pairs are read."""

    name: str
    verdict: str
    read: Callable[[Path], tuple[list[AnswerPair], int]]
    """(pairs, how many were left out)"""

    def sample(self, shared: Path, most: int, seed: int) -> tuple[list[AnswerPair], int]:
        pairs, left_out = self.read(shared)
        return random.Random(seed).sample(pairs, min(most, len(pairs))), left_out  # noqa: S311


def _user(text: str) -> Conversation:
    return (Message(role="user", content=text),)


def _pandalm(shared: Path) -> tuple[list[AnswerPair], int]:
    rows = json.loads((shared / "pandalm" / "testset-v1.json").read_text())
    pairs = []
    for row in rows:
        [(label, votes)] = Counter(row[f"annotator{n}"] for n in (1, 2, 3)).most_common(1)
        if votes > 1 and label:  # a few responses are numbers or truth values
            asked = _user(f"{row['instruction']}\n\n{row['input']}".strip())
            criterion = "The answer does what was asked, correctly and completely."
            pairs.append(AnswerPair(asked, (str(row["response1"]), str(row["response2"])), label - 1, criterion))
    return pairs, len(rows) - len(pairs)


def _hhh(shared: Path) -> tuple[list[AnswerPair], int]:
    rows = json.loads((shared / "prometheus_eval" / "hhh_alignment_eval.json").read_text())
    pairs = []
    for number, row in enumerate(rows):
        chosen, rejected = _HHH.search(row["chosen_instruction"]), _HHH.search(row["rejected_instruction"])
        if chosen and rejected:
            better = number % 2  # the source always names the better one first, so every other pair is turned round
            answers = (rejected[2], chosen[2]) if better else (chosen[2], rejected[2])
            pairs.append(AnswerPair(_user(chosen[1]), answers, better, chosen[3]))
    return pairs, len(rows) - len(pairs)


def _judgebench(shared: Path) -> tuple[list[AnswerPair], int]:
    files = ("pairs_claude.jsonl", "pairs_gpt4o.jsonl")
    rows = [row for name in files for row in jsonlines.rows((shared / "judgebench" / name).read_text())]
    return [
        AnswerPair(
            _user(row["question"]),
            (row["response_A"], row["response_B"]),
            int(row["label"] == "B>A"),
            "The answer to the question is correct.",
        )
        for row in rows
    ], 0


def _ukp(shared: Path) -> tuple[list[AnswerPair], int]:
    rows = jsonlines.rows((shared / "ukpconvarg1" / "arguments.jsonl").read_text())
    arguments = {row["id"]: row for row in rows}
    pairs = []
    with (shared / "ukpconvarg1" / "strict_labels.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            first, second = (arguments[name] for name in row["id"].split("_"))
            asked = _user(f"{first['debate_title']}: argue for “{first['stance']}”.")
            answers = (first["text"], second["text"])
            pairs.append(AnswerPair(asked, answers, int(row["label"] == "a2"), "The argument is convincing."))
    return pairs, 0


SOURCES = (
    VerdictData("pandalm", "majority of 3 people", _pandalm),
    VerdictData("hhh", "people, with a criterion", _hhh),
    VerdictData("ukpconvarg1", "5 people, cleaned", _ukp),
    VerdictData("judgebench", "the right answer", _judgebench),
)
