"""RM-Bench and RewardBench 2 as their papers score them, for reward models and judges alike.

A registered reward model scores in a job of the cluster; another one comes as a recording of scores. A pairwise judge is asked about every
right response beside every wrong one, a pointwise judge about every response.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import ClassVar

from trainer.config.errors import FieldProblem
from trainer.config.fields import Section, knob
from trainer.contracts import Response
from trainer.contracts.plurals import with_noun
from trainer.judges.combine import pair_verdicts
from trainer.judges.inputs import JudgeInput

from ... import report as r
from ..base import Context, FoundCase, NothingToScore, Recipe, RecipeConfig, RecipeOutcome, Writer, listed_twice
from . import blocks
from .groups import PreferenceGroup, Scores, TriedScorer, group_of

RATES = "pointwise"
NO_GROUP = "no list of right and wrong responses"


class ScoringJudgeChoice(Section):
    version: int = knob(..., "A judge that compares or rates, at a version", source="judges:pairwise,pointwise", ge=1)


class RewardModelChoice(Section):
    model: int = knob(..., "A registered model that scores texts", source="models:scalar", ge=1)


class RewardBenchmarkConfig(RecipeConfig):
    """The judges and reward models to ask. Scores that were computed elsewhere are chosen besides the dataset as a recording."""

    tried: ClassVar[tuple[str, ...]] = ("judges", "models")

    judges: list[ScoringJudgeChoice] = knob([], "Judges to ask about the responses of the dataset", max_length=8)
    models: list[RewardModelChoice] = knob([], "Reward models that score them, on the cluster", max_length=8)
    max_groups: int | None = knob(None, "Only the first prompts of the dataset; empty: all", unit="prompts", ge=1)

    def problems(self) -> Iterator[FieldProblem]:
        yield from listed_twice("judges", [each.version for each in self.judges])
        models = [each.model for each in self.models]
        for i, model in enumerate(models):
            if model in models[:i]:
                yield FieldProblem(f"models.{i}.model", "is listed twice")


def run(context: Context) -> RecipeOutcome:
    groups, left = _groups(context)
    tried = [*_recorded(context), *_scored(context, groups)]
    tried += [_asked(context, choice.version, groups) for choice in context.config.judges]
    if not tried:
        raise NothingToScore("the recording has no score of a response of this dataset")
    styled = [group for group in groups if group.styled]
    listed = [group for group in groups if not group.styled]
    measured = [blocks.measured(each, styled, listed) for each in tried]
    best = max(measured, key=lambda each: each.headline.value or 0.0)
    found = r.Report(
        headline=r.headline(f"{blocks.measure(best)} of {best.tried.name}", best.cell),
        coverage=[
            ("Prompts", r.count(len(groups))),
            ("Responses", r.count(sum(len(each.right) + len(each.wrong) for each in groups))),
            ("Missing", r.count(sum(each.missing for each in measured), "missing", tone="warn")),
            *([("Not a list", r.count(len(left), NO_GROUP, tone="warn"))] if left else []),
        ],
        blocks=[*blocks.rm_bench_tables(measured), *blocks.list_tables(measured)],
        entries=[blocks.entry(each, groups) for each in measured],
    )
    cases = [case for each in measured for case in blocks.cases(each, styled, listed)]
    return RecipeOutcome(found, [*cases, *left])


def _groups(context: Context) -> tuple[list[PreferenceGroup], list[FoundCase]]:
    groups: list[PreferenceGroup] = []
    left: list[FoundCase] = []
    for example in context.examples():
        group = group_of(example)
        if group is None:
            left.append(FoundCase({"example": example.key}, {"left out": NO_GROUP}, [NO_GROUP]))
        elif context.config.max_groups is None or len(groups) < context.config.max_groups:
            groups.append(group)
    if not groups:
        raise NothingToScore("no example has both right and wrong responses")
    return groups, left


def _recorded(context: Context) -> Iterator[TriedScorer]:
    by_model: dict[str, Scores] = defaultdict(dict)
    for line in context.lines():
        by_model[str(line["model"])][str(line["example"]), str(line["response"])] = line["score"]
    for model, scores in by_model.items():
        yield TriedScorer(model, "scores", scores=scores)


def _scored(context: Context, groups: Sequence[PreferenceGroup]) -> Iterator[TriedScorer]:
    models = [choice.model for choice in context.config.models]
    if models:
        keys = [example.key for example in context.examples() if example.responses]
        for model, scores in zip(models, context.scored(models, keys.index(groups[-1].key) + 1), strict=True):
            yield TriedScorer(context.writer_name(Writer(model=model)), "scores", scores=scores)


def _asked(context: Context, version: int, groups: Sequence[PreferenceGroup]) -> TriedScorer:
    facts = context.judge_facts(version)
    tried = TriedScorer(facts.key, "ratings", version=facts.version, judge=facts.judge)
    if facts.kind == RATES:
        _rate(context, tried, groups)
    else:
        tried.protocol = str(facts.spec["order"])
        _compare(context, tried, [group for group in groups if not group.tied])
    return tried


def _rate(context: Context, tried: TriedScorer, groups: Sequence[PreferenceGroup]) -> None:
    inputs = [_input(group, [*group.right, *group.wrong]) for group in groups]
    ratings: dict[tuple[str, str], list[float]] = defaultdict(list)
    for said in context.judge(tried.version or 0, inputs, f"{tried.name} rates {len(inputs):,} lists"):
        key = str(said.subject["example"])
        tried.verdicts[key] += [said.id] if said.id else []
        if said.parsed is not None:
            ratings[key, str(said.subject["response"])].append(float(said.parsed["rating"]))
    tried.scores = {where: mean(found) for where, found in ratings.items()}


def _compare(context: Context, tried: TriedScorer, groups: Sequence[PreferenceGroup]) -> None:
    """Whether it is right on balance over both orders, as in a judge audit: one order right and the other a tie is right."""
    inputs = [_input(group, pair) for group in groups for pair in group.pairs]
    answers = context.judge(tried.version or 0, inputs, f"{tried.name} on {with_noun(len(inputs), 'pairs')}")
    for said in answers:
        tried.verdicts[str(said.subject["example"])] += [said.id] if said.id else []
    tried.sides = {}
    for where, verdict in pair_verdicts(answers).items():
        cast = [side for side in (verdict.given, verdict.swapped) if side is not None]
        balance = -sum(cast)  # -1 is the first of the pair, which is the right one
        tried.sides[where] = (balance > 0) - (balance < 0) if cast else None


def _input(group: PreferenceGroup, responses: Sequence[Response]) -> JudgeInput:
    shown = {each.id: each.text for each in responses}
    return JudgeInput(example=group.key, conversation=group.example.prompt, responses=shown)


def check(config: RewardBenchmarkConfig, dataset: bool, recording: bool) -> Iterator[FieldProblem]:
    if not config.judges and not config.models and not recording:
        yield FieldProblem("recording", "choose recorded scores, or reward models or judges to ask")


RECIPE = Recipe(
    name="reward_benchmark",
    title="Reward benchmark",
    question="Does the reward model, or the judge, prefer the right response?",
    summary="RM-Bench's easy, normal and hard accuracy and RewardBench 2's best of a list, as their papers score them.",
    icon="trophy",
    schema=RewardBenchmarkConfig,
    run=run,
    recording="may",
    recorded="scores",
    check=check,
    measure="Score",
)
