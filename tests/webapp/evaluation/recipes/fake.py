"""A recipe's context without a database: judges are functions from a question to an answer."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer.contracts import Example
from trainer.judges.calls import expand, read
from trainer.judges.inputs import InputProblem, JudgeInput
from trainer.judges.spec import resolve as resolve_spec
from webapp.evaluation.recipes import RECIPES, resolve
from webapp.evaluation.recipes.base import (
    FoundCase,
    JudgedQuestion,
    JudgeFacts,
    NotMeasured,
    ProjectAnswer,
    Rollout,
    StudyJudgement,
    VerdictSpending,
)

Answer = Callable[
    [JudgeInput, dict[str, Any]], Any
]  # (input, subject) -> the answer as an object; None: no usable answer


@dataclass
class Judge:
    spec: dict[str, Any]
    answer: Answer


@dataclass
class FakeContext:
    """`judges`: version -> judge. `asked` counts the questions for each version."""

    recipe: str
    raw: dict[str, Any]
    listed: Sequence[Example] = ()
    judges: dict[int, Judge] = field(default_factory=dict)
    recorded: Sequence[dict[str, Any]] = ()
    sampled: dict[int, list[Rollout]] = field(default_factory=dict)
    learnt_from: dict[int, list[Rollout]] = field(default_factory=dict)
    asked: dict[int, int] = field(default_factory=dict)
    judgements: Sequence[StudyJudgement] = ()
    said: dict[int, list[ProjectAnswer]] = field(default_factory=dict)
    rho: dict[int, list[float | None]] = field(default_factory=dict)
    published: dict[int, list[Example]] = field(default_factory=dict)
    dataset: str = "pairs v1"

    @property
    def config(self) -> Any:
        return resolve(self.recipe, self.raw)

    def run(self) -> tuple[dict[str, Any], list[FoundCase]]:
        outcome = RECIPES[self.recipe].run(self)  # type: ignore[arg-type]
        for found in outcome.cases:
            json.dumps([found.subject, found.values], allow_nan=False)  # the database must be able to store it
        report = outcome.report.json({})
        json.dumps(report, allow_nan=False)
        return report, outcome.cases

    def examples(self) -> Iterator[Example]:
        return iter(self.listed)

    def graded(self, datasets: Sequence[int]) -> Iterator[tuple[str, Iterator[Example]]]:
        yield self.dataset, iter(self.listed)
        for each in datasets:
            yield f"graded {each} v1", iter(self.published[each])

    def lines(self) -> Iterator[Any]:
        return iter(self.recorded)

    def judge_facts(self, version: int) -> JudgeFacts:
        spec = self.judges[version].spec
        return JudgeFacts(version, version, f"judge {version}", spec["kind"], spec)

    def judge(self, version: int, inputs: Sequence[JudgeInput], phase: str, draw: int = 0) -> list[JudgedQuestion]:
        judge = self.judges[version]
        spec = resolve_spec(judge.spec)
        found = []
        for given in inputs:
            try:
                calls = expand(spec, f"v{version}", given, draw)
            except InputProblem:
                continue
            for call in calls:
                self.asked[version] = self.asked.get(version, 0) + 1
                raw = json.dumps(judge.answer(given, call.subject))
                reading = read(spec, call.subject, raw)
                ids = len(found) + 1 + 1000 * version
                found.append(JudgedQuestion(ids, reading.parsed, raw, reading.problem, call.subject))
        return found

    def rollouts(self, run: int, step: int | None) -> Iterator[Rollout]:
        return iter(self.sampled[run])

    def trained(self, run: int, step: int | None) -> Iterator[Rollout]:
        return iter(self.learnt_from.get(run, []))

    def embedding_diversity(self, texts: dict[str, list[str]]) -> dict[str, float | None]:
        """The distance of two texts is the difference of their lengths."""
        return {key: 0.01 * sum(map(len, listed)) if len(listed) > 1 else None for key, listed in texts.items()}

    def novelty(self, run: int, step: int | None) -> list[float | None]:
        if run not in self.rho:
            raise NotMeasured(f"run {run} keeps no checkpoint")
        return self.rho[run]

    def study(self, project: int) -> Iterator[StudyJudgement]:
        return iter(self.judgements)

    def answers(self, project: int) -> Iterator[ProjectAnswer]:
        return iter(self.said[project])

    def spent(self, verdicts: Sequence[int]) -> VerdictSpending:
        return VerdictSpending([0.5] * len(verdicts), None, None)

    def tell(self, phase: str, done: int, total: int) -> None:
        pass


def block(report: dict[str, Any], title: str) -> dict[str, Any]:
    return next(each for each in report["blocks"] if each["title"] == title)


def row(report: dict[str, Any], title: str, first: str) -> dict[str, Any]:
    """The cells of the row whose first cell is `first`, by the words of their columns."""
    table = block(report, title)
    cells = next(each for each in table["rows"] if each[0].get("text") == first)
    return {words: cell for (words, _), cell in zip(table["columns"], cells, strict=True)}


def cases_with_tags(cases: Sequence[FoundCase], tags: Sequence[str]) -> list[FoundCase]:
    return [case for case in cases if set(tags) <= set(case.tags)]
