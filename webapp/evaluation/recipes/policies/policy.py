"""Policy evaluation: how good are a model's responses, and what changed between two checkpoints?"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trainer.config.errors import FieldProblem
from trainer.config.fields import Section, knob
from trainer.contracts import Criterion, Example, Message, Rubric, Verdict
from trainer.judges.combine import criterion_verdicts, pair_verdicts
from trainer.judges.inputs import JudgeInput
from trainer.rubrics import ReportScore, report_score
from trainer.rubrics import verdicts as verified

from ... import report as r
from ..base import Context, FoundCase, NothingToScore, Recipe, RecipeOutcome, Rollout, tag
from . import blocks, corrected, variety
from .corrected import CorrectedConfig

MOST_NAMED = 12  # origins in a message


class ResponseChoice(Section):
    """The choice of responses: those that a run's evaluation sampled at a step, or those of the dataset, all or of one origin."""

    name: str = knob("", "Their name in the report; empty: the run or the origin", max_length=60)
    run: int | None = knob(None, "A run with evaluations", source="runs")
    step: int | None = knob(None, "Step of the evaluation; empty: the newest evaluation", ge=0, lt=2**31)
    origin: str = knob(
        "", "Without a run: the responses of the dataset that this model or person wrote", max_length=200
    )

    @property
    def title(self) -> str:
        if self.name:
            return self.name
        if self.run is not None:
            return f"run {self.run}{'' if self.step is None else f' step {self.step}'}"
        return self.origin or "dataset"


class PolicyConfig(CorrectedConfig):
    """Responses of one or more models to the same prompts; the others are compared with the first."""

    tried: ClassVar[tuple[str, ...]] = ("responses",)

    responses: list[ResponseChoice] = knob(
        [ResponseChoice()], "Models or checkpoints, side by side", min_length=1, max_length=8
    )
    judge: int | None = knob(None, "Decides criteria without a verifier", source="judges:criterion,checklist")
    pairwise: int | None = knob(
        None,
        "Compares two models' first responses to each prompt; empty: their scores do",
        source="judges:pairwise,pairwise_rubric",
    )
    threshold: float = knob(
        1.0, "A response is a success, for pass@k, if its clipped score is at least this", gt=0, le=1
    )
    embeddings: bool = knob(True, "Also measure how far apart in meaning the responses to a prompt are")
    novelty: bool = knob(
        False,
        "Also measure how much more likely a run's responses are than before training; this loads its weights and takes minutes",
    )
    max_prompts: int | None = knob(None, "Only the first prompts; empty: all", unit="prompts", ge=1)

    def problems(self) -> Iterator[FieldProblem]:
        seen: set[str] = set()
        for i, each in enumerate(self.responses):
            if each.title in seen:
                yield FieldProblem(f"responses.{i}.name", f"two of them are called {each.title!r}; give one a name")
            seen.add(each.title)
            if each.run is not None and each.origin:
                yield FieldProblem(
                    f"responses.{i}.origin", "is for responses of the dataset; leave it empty with a run"
                )
            if each.run is None and each.step is not None:
                yield FieldProblem(f"responses.{i}.step", "needs a run")


@dataclass
class ScoredAnswer:
    """One response with its score. `example` is None if the dataset does not have its prompt."""

    model: str
    key: str
    id: str
    text: str
    prompt: tuple[Message, ...]
    example: Example | None
    rubric: Rubric | None
    verdicts: list[Verdict]
    tokens: int | None = None
    response: str = ""
    brought: bool = False  # the dataset does not have it under this id: the case holds its text
    place: int = 0  # among what the run sampled
    rho: float | None = None
    next: bool = False  # people should grade it next
    score: ReportScore | None = None
    ids: list[int] = field(default_factory=list)
    outcomes: dict[str, list[str]] = field(
        default_factory=lambda: defaultdict(list)
    )  # won, tied, lost: the other models

    @property
    def value(self) -> float | None:
        return self.score.score if self.score else None

    @property
    def clipped(self) -> float | None:
        return self.score.clipped if self.score else None

    @property
    def domain(self) -> str:
        return self.example.domain if self.example else ""

    @property
    def axes(self) -> list[str]:
        return sorted({name for criterion in (self.rubric.criteria if self.rubric else ()) for name in criterion.tags})

    @property
    def split(self) -> str:
        """The split on which a run evaluates itself: its held-out part."""
        return (self.example.split or "") if self.example else "heldout"


def run(context: Context) -> RecipeOutcome:
    answered, trained = _collected(context)
    learnt_from = [each for rows in trained.values() for each in rows]
    names = [choice.title for choice in context.config.responses]
    decide(context, answered, learnt_from)
    reasons = variety.measure_novelty(context, {name: [e for e in answered if e.model == name] for name in names})
    return RecipeOutcome(report(context, names, answered, trained, reasons), cases(answered, learnt_from))


def decide(context: Context, answered: Sequence["ScoredAnswer"], learnt_from: Sequence["ScoredAnswer"] = ()) -> None:
    """Asks the judge, if there is one, about criteria that no verifier decides, and scores each response by its rubric."""
    if context.config.judge:
        _judge(context, answered)
    for each in [*answered, *learnt_from]:
        if each.rubric:
            each.score = report_score(each.rubric, each.verdicts)


def cases(answered: Sequence["ScoredAnswer"], learnt_from: Sequence["ScoredAnswer"] = ()) -> list[FoundCase]:
    return [*map(_case, answered), *map(_training_case, learnt_from)]


def report(
    context: Context,
    names: Sequence[str],
    answered: Sequence["ScoredAnswer"],
    trained: dict[str, list["ScoredAnswer"]],
    reasons: dict[str, str],
) -> r.Report:
    """The report of decided responses. `trained`: what a run learnt from, by model; `reasons`: why a model's novelty is not known."""
    by_model = {name: [each for each in answered if each.model == name] for name in names}
    scores = {name: blocks.scores(rows) for name, rows in by_model.items()}
    return r.Report(
        headline=r.headline(
            f"Clipped score of {names[-1]}", r.estimate(scores[names[-1]]["clipped"], tag("model", names[-1]))
        ),
        coverage=blocks.coverage(answered),
        blocks=[
            blocks.table(by_model, scores),
            *corrected.table(context, by_model),
            *blocks.changed(by_model),
            *variety.table(context, by_model, reasons),
            *_wins(context, by_model),
            *blocks.split("By domain", by_model, lambda each: each.domain, "domain"),
            *blocks.splits(by_model, trained),
            *blocks.axes(by_model),
            *blocks.criteria(by_model),
            *blocks.several(by_model, context.config.threshold),
        ],
        entries=[
            r.Entry(
                name,
                r.estimate(scores[name]["clipped"], tag("model", name)),
                **r.measured_on(each.key for each in by_model[name]),
            )
            for name in names
        ],
    )


def _collected(context: Context) -> tuple[list[ScoredAnswer], dict[str, list[ScoredAnswer]]]:
    """The responses to score, and by model the responses from which its run learnt. Raises NothingToScore for a model without any."""
    examples = {example.key: example for example in context.examples()}
    answered: list[ScoredAnswer] = []
    trained: dict[str, list[ScoredAnswer]] = {}
    for number, choice in enumerate(context.config.responses):
        mine = list(_answered(context, choice, number, examples))
        if not mine:
            raise NothingToScore(_nothing(choice, examples))
        answered += mine
        if choice.run is not None:
            sampled = context.trained(choice.run, choice.step)
            trained[choice.title] = _of_run(sampled, f"{choice.title} in training", f"{number}.t", examples)
    return _limited(answered, context.config.max_prompts), trained


def _nothing(choice: ResponseChoice, examples: dict[str, Example]) -> str:
    if choice.run is not None:
        return f"{choice.title}: the run has sampled nothing in an evaluation at this step"
    origins = sorted({response.origin or "" for example in examples.values() for response in example.responses})
    known = ", ".join(origin or "nobody named" for origin in origins[:MOST_NAMED])
    return f"{choice.title}: the dataset has no such responses; it has those of {known or 'nobody'}"


def _answered(
    context: Context, choice: ResponseChoice, number: int, examples: dict[str, Example]
) -> Iterator[ScoredAnswer]:
    if choice.run is None:
        for example in examples.values():
            for response in example.responses:
                if not choice.origin or response.origin == choice.origin:
                    verdicts = list(verified(example.rubric, response.text)) if example.rubric else []
                    place = f"{number}.{response.id}"
                    yield ScoredAnswer(
                        choice.title,
                        example.key,
                        place,
                        response.text,
                        example.prompt,
                        example,
                        example.rubric,
                        verdicts,
                        response=response.id,
                    )
        return
    for each in _of_run(context.rollouts(choice.run, choice.step), choice.title, f"{number}.", examples):
        each.response, each.brought = f"sampled-{each.id}", True  # people can be asked about it, as about any other
        yield each


def _of_run(rollouts: Iterable[Rollout], model: str, place: str, examples: dict[str, Example]) -> list[ScoredAnswer]:
    found = []
    for at, rollout in enumerate(rollouts):
        example = examples.get(rollout.example)
        prompt = example.prompt if example else (Message(role="user", content=rollout.prompt),)
        rubric, verdicts = _of_rollout(rollout)
        each = ScoredAnswer(model, rollout.example, f"{place}{at}", rollout.text, prompt, example, rubric, verdicts)
        each.tokens, each.place = rollout.tokens, at
        found.append(each)
    return found


def _of_rollout(rollout: Rollout) -> tuple[Rubric | None, list[Verdict]]:
    """The rubric with which the run scored it: each rollout carries its criteria."""
    criteria = [
        Criterion(
            id=e.verdict.criterion_id, text=e.text, points=e.points, kind="hard" if e.kind == "hard" else "principle"
        )
        for e in rollout.criteria
    ]
    if not any(criterion.points > 0 for criterion in criteria):
        return None, []
    return Rubric(criteria=tuple(criteria)), [each.verdict for each in rollout.criteria]


def _limited(answered: list[ScoredAnswer], most: int | None) -> list[ScoredAnswer]:
    if most is None:
        return answered
    kept = set(list(dict.fromkeys(each.key for each in answered))[:most])
    return [each for each in answered if each.key in kept]


def _judge(context: Context, answered: Sequence[ScoredAnswer]) -> None:
    """Asks about the criteria that no verifier and no run has decided."""
    by_id = {(each.key, each.id): each for each in answered}
    inputs = []
    for each in answered:
        open_ = {verdict.criterion_id for verdict in each.verdicts if verdict.met is None}
        criteria = tuple(c for c in (each.rubric.criteria if each.rubric else ()) if c.id in open_)
        if criteria:
            reference = each.example.reference or "" if each.example else ""
            inputs.append(JudgeInput(each.key, each.prompt, {each.id: each.text}, criteria, reference))
    answers = context.judge(context.config.judge, inputs, "deciding criteria")
    for key, found in criterion_verdicts(answers).items():
        said = {verdict.criterion_id: verdict for verdict in found}
        each = by_id[key]
        each.verdicts = [said.get(v.criterion_id, v) if v.met is None else v for v in each.verdicts]
    for answer in answers:
        if answer.id:
            by_id[answer.subject["example"], answer.subject["response"]].ids.append(answer.id)


def _wins(context: Context, by_model: dict[str, list[ScoredAnswer]]) -> Iterator[r.Table]:
    if len(by_model) < 2:
        return
    version = context.config.pairwise
    if version is None:
        outcomes = blocks.by_scores(by_model)
        blocks.note_outcomes(outcomes, {name: _by_key(rows) for name, rows in by_model.items()})
        yield blocks.ranking(outcomes, "by mean clipped score on each prompt")
        return
    firsts = {name: {key: found[0] for key, found in _by_key(rows).items()} for name, rows in by_model.items()}
    met = [(a, b, key) for a, b in blocks.pairs_of(by_model) for key in firsts[a] if key in firsts[b]]
    inputs = []
    for a, b, key in met:
        one, two = firsts[a][key], firsts[b][key]
        criteria = one.rubric.criteria if one.rubric else ()
        inputs.append(JudgeInput(key, one.prompt, {one.id: one.text, two.id: two.text}, criteria))
    answers = context.judge(version, inputs, "comparing models")
    found, by_id = pair_verdicts(answers), {(each.key, each.id): each for rows in by_model.values() for each in rows}
    for answer in answers:
        for side in ("a", "b"):
            each = by_id[answer.subject["example"], answer.subject[side]]
            each.ids += [answer.id] if answer.id else []
    outcomes = []
    for a, b, key in met:
        verdict = found.get((key, firsts[a][key].id, firsts[b][key].id))
        outcomes.append((a, b, key, verdict.verdict if verdict else None))
    blocks.note_outcomes(outcomes, {name: {k: [each] for k, each in rows.items()} for name, rows in firsts.items()})
    yield blocks.ranking(outcomes, f"by {context.judge_facts(version).key}")


def _by_key(rows: Sequence[ScoredAnswer]) -> dict[str, list[ScoredAnswer]]:
    found: dict[str, list[ScoredAnswer]] = defaultdict(list)
    for each in rows:
        found[each.key].append(each)
    return found


def _case(each: ScoredAnswer) -> FoundCase:
    tags = [tag("model", each.model), tag("example", each.key)]
    tags += [tag("domain", each.domain)] if each.domain else []
    tags += [tag("split", each.example.split)] if each.example and each.example.split else []
    tags += [*[tag("axis", name) for name in each.axes], *each.outcomes]
    if sum(map(len, each.outcomes.values())) > 1:  # a single other model needs no name
        tags += [tag(words, other) for words, others in each.outcomes.items() for other in others]
    tags += [corrected.NEXT] if each.next else []
    tags += ["no score"] if each.value is None else ["partial"] if each.score and each.score.partial else []
    by_id = {criterion.id: criterion for criterion in each.rubric.criteria} if each.rubric else {}
    shown = []
    for verdict in each.verdicts:
        state = "undecided" if verdict.met is None else "met" if verdict.met else "not met"
        tags += ["undecided"] if verdict.met is None else []
        if verdict.met is False:
            tags.append(tag("not met", by_id[verdict.criterion_id].text))
        found = by_id[verdict.criterion_id]
        shown.append({"text": found.text, "points": found.points, "met": state, "note": verdict.note})
    values: dict[str, Any] = {"score": each.value, "clipped": each.clipped, "criteria": shown, "verdicts": each.ids}
    values |= {"novelty": each.rho} if each.rho is not None else {}
    values |= {blocks.AGAINST[words]: ", ".join(others) for words, others in each.outcomes.items()}
    subject = {"model": each.model, "example": each.key}
    subject |= {"response": each.response} if each.response else {}
    if each.brought or not each.response:
        values |= {"prompt": each.prompt[-1].content, "text": each.text}
    return FoundCase(subject, values, tags)


def _training_case(each: ScoredAnswer) -> FoundCase:
    """A case of training. Only its own number leads to it: the other numbers use the evaluation's responses."""
    found = _case(each)
    return FoundCase(found.subject, found.values, [tag("model", each.model), tag("example", each.key)])


def check(config: PolicyConfig, dataset: bool, recording: bool) -> Iterator[FieldProblem]:
    if not dataset and any(each.run is None for each in config.responses):
        yield FieldProblem("dataset", "choose the dataset whose responses are scored, or a run for each of them")


RECIPE = Recipe(
    name="policy",
    title="Policy evaluation",
    question="How good are a model's responses, and what changed?",
    summary="Rubric scores by criterion, axis and domain, pass@k and best-of-N, win rates with Bradley-Terry strengths; checkpoints side by side.",
    icon="flask-conical",
    schema=PolicyConfig,
    run=run,
    dataset="may",
    check=check,
    tasks="grading",
    measure="Clipped rubric score",
)
