"""Measures the accuracy of the judges that come with the product, on the shared data; `benchmarks.local_judges --accuracy` prints it.

Every row has its n, a 95% interval from a bootstrap over questions (pairs on one question are not independent evidence),
chance, and the accuracy of always giving the more frequent verdict.
"""

import gzip
import json
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.human_verdicts import SOURCES, AnswerPair
from trainer.contracts import VerifierSpec, jsonlines
from trainer.inference.embeddings import BACKGROUND, LIFT, Embedder
from trainer.judges.local import wording
from trainer.logit_judge.answering import Answering
from trainer.logit_judge.calibration import MeasuredShare, ThresholdCalibration, calibrate, halves, resampled
from trainer.logit_judge.calls import USUAL, LocalCall
from trainer.rewards.alignment import background
from trainer.verifiers import verify

DATA = Path(__file__).parent / "data"
PEOPLE = ("pandalm", "hhh", "ukpconvarg1")  # the threshold is learned from their preferences
_TOGETHER = 32


@dataclass(frozen=True)
class AccuracyRow:
    """A line of the table. `note` says what was left out and why."""

    what: str
    truth: str
    right: MeasuredShare
    majority: float
    chance: float | None = 0.5
    note: str = ""

    def __str__(self) -> str:
        r = self.right
        chance = "–" if self.chance is None else f"{self.chance:.2f}"
        cells = (self.what, self.truth, str(r.n), f"{r.value:.3f}", f"{r.low:.3f}–{r.high:.3f}", chance)
        return "| " + " | ".join([*cells, f"{self.majority:.3f}", self.note]) + " |"


HEAD = "| judged | truth | n | accuracy | 95% | chance | majority | |\n|---|---|---|---|---|---|---|---|"


def measure(right: Sequence[bool], items: Sequence[str], seed: int) -> MeasuredShare:
    return resampled(right, np.ones(len(right)), items, seed)


def commoner(truth: Sequence[bool]) -> float:
    share = float(np.mean(truth))
    return max(share, 1 - share)


# Verifiers


def _spec(kind: str, args: dict[str, Any], prompt: str) -> VerifierSpec | None:
    """Our verifier for an IFBench constraint; None if there is none."""
    if kind == "count:word_count_range":
        return VerifierSpec(name="word_count", args={"min": int(args["min_words"]), "max": int(args["max_words"])})
    if kind == "format:title_case":
        return VerifierSpec(name="casing", args={"style": "title"})
    if kind == "format:output_template":
        return VerifierSpec(
            name="must_contain", args={"texts": re.findall(r"(My \w+:|\w+ \w+:) \[", prompt), "match": "all"}
        )
    patterns = {"format:no_whitespace": r"\A\S*\Z", "format:newline": r"\A\s*\S+(\n+\S+)*\s*\Z"}
    return VerifierSpec(name="regex", args={"pattern": patterns[kind]}) if kind in patterns else None


def verifiers(shared: Path, seed: int) -> AccuracyRow:
    """Our verifiers on the recorded answers of IFBench against the benchmark's own programs."""
    given = jsonlines.rows((shared / "ifbench" / "IFBench_test.jsonl").read_text())
    prompts = {row["prompt"]: row for row in given}
    rows = jsonlines.rows((shared / "ifbench" / "eval_results_strict.jsonl").read_text())
    truth, right, items, others = [], [], [], 0
    for row in rows:
        kwargs = prompts.get(row["prompt"], {}).get("kwargs") or [{}] * len(row["instruction_id_list"])
        for kind, args, met in zip(row["instruction_id_list"], kwargs, row["follow_instruction_list"], strict=True):
            spec = _spec(kind, args, row["prompt"]) if args or "range" not in kind else None
            if spec is None:
                others += 1
                continue
            truth.append(met)
            right.append(verify(spec, row["response"]).met is met)
            items.append(row["prompt"])
    note = f"{others} constraints that no verifier of ours expresses are left out"
    return AccuracyRow("verifiers", "IFBench's programs", measure(right, items, seed), commoner(truth), None, note)


# Logit judge


def margins(answering: Answering, pairs: Sequence[AnswerPair]) -> NDArray[np.float64]:
    """(pairs, 2) log odds of yes for both answers, NaN if the model cannot see the whole text."""
    calls = [
        LocalCall(key=f"{n}-{k}", conversation=p.conversation, response=text, criterion=p.criterion)
        for n, p in enumerate(pairs)
        for k, text in enumerate(p.answers)
    ]
    verdicts = (
        v for start in range(0, len(calls), _TOGETHER) for v in answering.answer(calls[start : start + _TOGETHER])
    )
    return np.array([verdict.get("margin", np.nan) for verdict in verdicts]).reshape(-1, 2)


def preferred(
    pairs: Sequence[AnswerPair], scores_N2: NDArray[np.float64], name: str, truth: tuple[str, str], left: int, seed: int
) -> AccuracyRow:
    """The accuracy of preferring the answer with the higher score; equal or missing scores are not right."""
    places = np.array([pair.better for pair in pairs])
    chosen, other = scores_N2[np.arange(len(pairs)), places], scores_N2[np.arange(len(pairs)), 1 - places]
    right = (chosen > other).tolist()
    missing = int(np.isnan(scores_N2).any(1).sum())
    note = ", ".join([f"{left} ties left out"] * bool(left) + [f"{missing} too long, counted wrong"] * bool(missing))
    found = measure(right, [pair.item for pair in pairs], seed)
    return AccuracyRow(f"{name}: {truth[0]}", truth[1], found, commoner([bool(p) for p in places]), 0.5, note)


@dataclass
class JudgedSources:
    """All sources together, so that one threshold is learned from them."""

    margins: list[float]
    met: list[bool]
    items: list[str]
    sources: list[str]

    def add(self, source: str, pairs: Sequence[AnswerPair], scores_N2: NDArray[np.float64]) -> None:
        """Add pairs: the preferred answer counts as meeting the criterion and the other as not."""
        for pair, scores in zip(pairs, scores_N2.tolist(), strict=True):
            for place, score in enumerate(scores):
                if not np.isnan(score):
                    self.margins.append(score)
                    self.met.append(place == pair.better)
                    self.items.append(f"{source}: {pair.item}")
                    self.sources.append(source)


def logit(answering: Answering, shared: Path, most: int, seed: int, rows: list[AccuracyRow]) -> ThresholdCalibration:
    """Append a row per source and the rows of the calibrated verdicts; returns the calibration."""
    judged = JudgedSources([], [], [], [])
    for source in SOURCES:
        pairs, left = source.sample(shared, most, seed)
        scores = margins(answering, pairs)
        rows.append(preferred(pairs, scores, "logit judge, better of two", (source.name, source.verdict), left, seed))
        print(rows[-1], flush=True)
        if source.name in PEOPLE:
            judged.add(source.name, pairs, scores)
    named: dict[str, Any] = {"model": answering.name, "digest": answering.digest, "wording": wording(USUAL)}
    described = (
        f"preferences of people on {', '.join(PEOPLE)}, {most} pairs of each at most: preferred = met, other = not met"
    )
    found = calibrate(judged.margins, judged.met, judged.items, seed=seed, verdicts=described, **named)
    tried = ~halves(judged.items, seed)
    said, truth = np.array(judged.margins) > found.threshold, np.array(judged.met)
    for name in (*PEOPLE, None):
        here = tried & (np.array([source == name or name is None for source in judged.sources]))
        if not here.any():  # of a small sample; this source alone then says nothing
            continue
        items = [item for item, taken in zip(judged.items, here, strict=True) if taken]
        right = measure((said == truth)[here].tolist(), items, seed)
        rows.append(
            AccuracyRow(
                f"logit judge, criterion met: {name or 'all three'}",
                "the held half",
                right,
                commoner(truth[here].tolist()),
            )
        )
        print(rows[-1], flush=True)
    return found


# Matcher


def lists(kind: str) -> list[dict[str, Any]]:
    rows = jsonlines.rows((DATA / "same_or_not.jsonl").read_text())
    return [row for row in rows if row["kind"] == kind]


def lifts(embed: Embedder, kind: str) -> tuple[list[float], list[bool], list[str]]:
    """For every pair across two lists: the cosine above that within the lists, whether both say the same, and the task."""
    found: tuple[list[float], list[bool], list[str]] = ([], [], [])
    for row in lists(kind):
        size = len(row["one"])
        vectors = embed([*row["one"], *row["two"]]).double().numpy()
        similarity = vectors @ vectors.T
        common = background(similarity, [0] * size + [1] * size) or 0.0
        for i in range(size):
            for j in range(size):
                found[0].append(float(similarity[i, size + j]) - common)
                found[1].append(i == j)
                found[2].append(row["item"])
    return found


def matcher(shared: Path, seed: int) -> Iterable[AccuracyRow]:
    embed = Embedder()
    for kind in ("items", "reasons"):
        values, same, items = lifts(embed, kind)
        named: dict[str, Any] = {
            "model": "all-MiniLM-L6-v2",
            "digest": "",
            "wording": kind,
            "verdicts": "same_or_not.jsonl",
        }
        found = calibrate(values, same, items, seed=seed, **named)
        note = f"lift {found.threshold:.3f}, learned on the other half; other seeds split otherwise"
        yield AccuracyRow(f"matcher, {kind}", "written for this", found.accuracy, found.majority, 0.5, note)
    yield from _edits(embed, seed)
    yield _rubric_levels(embed, shared, seed)
    yield _distinct(embed, shared, seed)
    yield _reasons(embed, shared, seed)


Truth = tuple[list[bool], list[str]]
"""For each decision whether it is right, and the question it belongs to."""


def _once(embed: Embedder, texts: Iterable[str]) -> Callable[[Sequence[str]], Tensor]:
    """Vectors of any of the texts, all embedded in one call: many small calls cost several times as much."""
    each = list(dict.fromkeys(texts))
    place, vectors = {text: at for at, text in enumerate(each)}, embed(each)
    return lambda wanted: vectors[[place[text] for text in wanted]]


def _edits(embed: Embedder, seed: int) -> Iterable[AccuracyRow]:
    for kind in ("items", "reasons"):
        found = measure(*edits(embed, kind), seed)
        yield AccuracyRow(f"matcher, paraphrase or small edit: {kind}", "written for this", found, 0.5, 0.5)


def edits(embed: Embedder, kind: str) -> Truth:
    """Is a paraphrase nearer than a small edit with another meaning?"""
    rows = jsonlines.rows((DATA / "almost_the_same.jsonl").read_text())
    taken = [row for row in rows if row["kind"] == kind]
    text, same, other = (embed([row[name] for row in taken]) for name in ("text", "same", "different"))
    return ((text * same).sum(1) > (text * other).sum(1)).tolist(), [row["item"] for row in taken]


def _rubric_levels(embed: Embedder, shared: Path, seed: int) -> AccuracyRow:
    right, items = rubric_levels(embed, shared)
    chance = len(set(items)) / len(items)
    note = "the nearest of about 10 descriptions of the task"
    return AccuracyRow(
        "matcher, criterion to its description", "BiGGen", measure(right, items, seed), chance, chance, note
    )


def rubric_levels(embed: Embedder, shared: Path) -> Truth:
    """BiGGen: a criterion and its description of the best answer, compared with those of other prompts of the same task."""
    rows = jsonlines.rows((shared / "biggen_rubrics" / "rubrics.jsonl").read_text())
    tasks: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        tasks.setdefault(f"{row['capability']} {row['task']}", []).append(row["score_rubric"])
    right: list[bool] = []
    items: list[str] = []
    embedded = _once(embed, (row["score_rubric"][name] for row in rows for name in ("criteria", "score5_description")))
    for task, rubrics in tasks.items():
        one, two = (embedded([rubric[name] for rubric in rubrics]) for name in ("criteria", "score5_description"))
        right += [int(best) == n for n, best in enumerate((one @ two.T).argmax(1))]
        items += [task] * len(rubrics)
    return right, items


def _distinct(embed: Embedder, shared: Path, seed: int) -> AccuracyRow:
    right, items = distinct(embed, shared)
    note = "all differ: the rest is above the border"
    return AccuracyRow(
        "matcher, different criteria of one rubric", "HealthBench", measure(right, items, seed), 1.0, 0.5, note
    )


def distinct(embed: Embedder, shared: Path) -> Truth:
    """HealthBench: criteria of one rubric differ, so two halves of a rubric have nothing to match."""
    rows = jsonlines.rows((shared / "healthbench_sample" / "healthbench_30.jsonl").read_text())
    right: list[bool] = []
    items: list[str] = []
    embedded = _once(embed, (criterion["criterion"] for row in rows for criterion in row["rubrics"]))
    for row in rows:
        texts = [criterion["criterion"] for criterion in row["rubrics"]]
        vectors = embedded(texts).double().numpy()
        similarity, owners = vectors @ vectors.T, [n % 2 for n in range(len(texts))]
        common = background(similarity, owners)
        border = (BACKGROUND["items"] if common is None else common) + LIFT["items"]
        right += (similarity[::2, 1::2] <= border).ravel().tolist()
        items += [row["prompt_id"]] * similarity[::2, 1::2].size
    return right, items


def _reasons(embed: Embedder, shared: Path, seed: int) -> AccuracyRow:
    note = "reasons for one side need not be the same reason"
    found = measure(*reasons(embed, shared, seed), seed)
    return AccuracyRow("matcher, reasons for the same side are nearer", "UKP", found, 0.5, 0.5, note)


def reasons(embed: Embedder, shared: Path, seed: int) -> Truth:
    """UKP: two people's reasons on one pair of arguments; those for the same side should be nearer than those for both."""
    with gzip.open(shared / "ukpconvarg1" / "pairs_with_reasons.jsonl.gz", "rt") as file:
        rows = random.Random(seed).sample([json.loads(line) for line in file], 600)  # noqa: S311
    right: list[bool] = []
    items: list[str] = []
    embedded = _once(embed, (a["reason"] for row in rows for a in row["annotations"] if a["reason"]))
    for row in rows:
        given = [a for a in row["annotations"] if a["value"] in ("a1", "a2") and a["reason"]]
        sides = [a["value"] for a in given]
        vectors = embedded([a["reason"] for a in given])
        for n, side in enumerate(sides):
            like = [k for k in range(len(sides)) if k != n and sides[k] == side]
            unlike = [k for k in range(len(sides)) if sides[k] != side]
            if like and unlike:
                right.append(float(vectors[n] @ vectors[like[0]]) > float(vectors[n] @ vectors[unlike[0]]))
                items.append(row["topic"])
    return right, items
