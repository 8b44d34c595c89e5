"""Generation: what do models answer to a dataset's prompts, and how good is it?"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

from trainer.benchmarks.estimate import proportion
from trainer.config.errors import FieldProblem
from trainer.config.fields import knob
from trainer.config.sampler import Sampler
from trainer.contracts import Example, Response
from trainer.rewards import verdicts as verified

from .. import report as r
from . import policy
from .base import Context, Found, NothingToScore, Outcome, Recipe, Writer, Written, tag
from .corrected import CorrectedConfig
from .policy import Answered

NOBODY = "no response"
SAMPLING = ("temperature", "top_p", "max_new_tokens", "stop", "seed")


class GenerateConfig(CorrectedConfig):
    """Models that answer the same prompts, sampled alike; the first is what the others are compared with."""

    tried: ClassVar[tuple[str, ...]] = ("writers",)
    spared: ClassVar[tuple[str, ...]] = (*CorrectedConfig.spared, "sampler", "into", "keep", "embeddings")
    novelty: ClassVar[bool] = False

    writers: list[Writer] = knob([Writer()], "Models that answer, side by side", min_length=1, max_length=8)
    samples: int = knob(1, "Responses to each prompt", ge=1, le=64)
    max_new_tokens: int = knob(256, "Longest response", unit="tokens", ge=1, le=32_768)
    temperature: float = knob(0.7, "0 always takes the likeliest token", ge=0, le=2)
    top_p: float = knob(1.0, "Nucleus: the likeliest tokens that sum to this", gt=0, le=1)
    stop: list[str] = knob([], "Texts that end a response; models of the registry only", max_length=8, advanced=True)
    seed: int = knob(0, "Decides what is drawn; another one asks endpoints anew", ge=0, lt=2**31)
    split: Literal["heldout", "train", ""] = knob("heldout", "Of the dataset; none: all prompts")
    max_prompts: int | None = knob(None, "Only the first prompts; empty: all", unit="prompts", ge=1)
    judge: int | None = knob(None, "Decides criteria without a verifier", source="judges:criterion,checklist")
    pairwise: int | None = knob(
        None,
        "Compares two models' first responses to each prompt; empty: their scores do",
        source="judges:pairwise,pairwise_rubric",
    )
    threshold: float = knob(1.0, "Clipped score from which a response counts as a success, for pass@k", gt=0, le=1)
    embeddings: bool = knob(False, "Also measure how far apart in meaning the responses to a prompt are")
    into: str = knob("", "A dataset, known or new, that gets the responses as a version; empty: none", max_length=120)
    keep: bool = knob(False, "With a dataset: keep the responses and preferences that the prompts have already")
    sampler: Sampler = Sampler()

    def problems(self) -> Iterator[FieldProblem]:
        seen: dict[str, set[object]] = {"name": set(), "model": set(), "endpoint": set()}
        for i, each in enumerate(self.writers):
            if (each.model is None) == (each.endpoint is None):
                yield FieldProblem(f"writers.{i}.model", "choose a model or an endpoint, one of the two")
            for field, known in seen.items():
                value = getattr(each, field)
                if value and value in known:
                    yield FieldProblem(f"writers.{i}.{field}", "is listed twice")
                known.add(value)
        if self.stop and any(each.endpoint is not None for each in self.writers):
            yield FieldProblem("stop", "endpoints are not told where to stop; leave it empty, or choose models only")
        yield from self.sampler.problems(adapters=False, runner="sync")


def run(context: Context) -> Outcome:
    config = context.config
    writers = config.writers
    names = _names(context, writers)
    prompts = chosen(context.examples(), config.split, config.max_prompts)
    if not prompts:
        raise NothingToScore("The dataset has no prompt on this side of the split.")
    found = dict(zip(names, context.written(writers, prompts), strict=True))
    known = {example.key: example for example in prompts}
    answered, unanswered = _parted(names, writers, found, known)
    policy.decide(context, answered)
    report = policy.report(context, names, answered, {}, dict.fromkeys(names, "only runs remember what came before"))
    _add(report, names, answered, unanswered, found)
    cases = [*policy.cases(answered), *unanswered]
    origins = {name: context.writer_name(each) for name, each in zip(names, writers, strict=True)}
    records = _records(config, prompts, answered, found, origins) if config.into else ()
    return Outcome(report, cases, records)


def chosen(examples: Iterator[Example], split: str, most: int | None) -> list[Example]:
    """The first prompts of that side, in the dataset's order."""
    listed = (example for example in examples if not split or example.split == split)
    return [example for _, example in zip(range(most), listed, strict=False)] if most else list(listed)


def _names(context: Context, writers: Sequence[Writer]) -> list[str]:
    names: list[str] = []
    for each in writers:
        name = each.name or context.writer_name(each)
        names.append(name if name not in names else f"{name} ({'model' if each.endpoint is None else 'endpoint'})")
    return names


def response_id(writer: Writer, sample: int) -> str:
    return f"m{writer.model}-{sample}" if writer.endpoint is None else f"e{writer.endpoint}-{sample}"


def _parted(
    names: list[str], writers: list[Writer], found: dict[str, list[Written]], known: dict[str, Example]
) -> tuple[list[Answered], list[Found]]:
    """The responses, and cases of what has none. Raises NothingToScore for a model that has answered nothing."""
    answered: list[Answered] = []
    unanswered: list[Found] = []
    for name, writer in zip(names, writers, strict=True):
        mine = [_answered(name, writer, each, known[each.example]) for each in found[name] if not each.problem]
        lost = [_unanswered(name, each, known[each.example]) for each in found[name] if each.problem]
        if not mine:
            raise NothingToScore(
                f"{name} has answered no prompt: {lost[0].values['problem'] if lost else 'it was asked none'}"
            )
        answered += mine
        unanswered += lost
    return answered, unanswered


def _answered(name: str, writer: Writer, said: Written, example: Example) -> Answered:
    verdicts = list(verified(example.rubric, said.text)) if example.rubric else []
    mine = response_id(writer, said.sample)
    each = Answered(name, example.key, mine, said.text, example.prompt, example, example.rubric, verdicts)
    each.tokens, each.response, each.brought = said.tokens, mine, True
    return each


def _unanswered(name: str, said: Written, example: Example) -> Found:
    tags = [tag("model", name), tag("example", example.key), NOBODY]
    return Found(
        {"model": name, "example": example.key}, {"problem": said.problem, "prompt": example.prompt[-1].content}, tags
    )


def _add(
    report: r.Report,
    names: list[str],
    answered: list[Answered],
    unanswered: list[Found],
    found: dict[str, list[Written]],
) -> None:
    """What there is to say beyond scores: who answered, and how the responses ended."""
    if not any(each.rubric for each in answered):
        asked, got = len(answered) + len(unanswered), len(answered)
        report.headline = r.headline("Prompts answered", r.estimate(proportion(got, asked)))
    if unanswered:
        report.coverage.append(("Without a response", r.count(len(unanswered), NOBODY, tone="warn")))
    rows = []
    for name in names:
        ends = [each.finish_reason for each in found[name] if not each.problem]
        lost = sum(bool(each.problem) for each in found[name])
        rows.append(
            [
                r.text(name, tag("model", name)),
                r.count(lost, tag("model", name), NOBODY, tone="warn" if lost else ""),
                r.number(sum(each == "length" for each in ends), "count"),
            ]
        )
    columns = [("Model", ""), ("Without a response", ""), ("Cut at the longest", "they would have gone on")]
    report.blocks.append(r.Table("What became of the prompts", columns, rows))


def _records(
    config: Any,
    prompts: Sequence[Example],
    answered: Sequence[Answered],
    found: dict[str, list[Written]],
    origins: dict[str, str],
) -> list[Example]:
    """The prompts with what was generated for them; those without a response are left out.

    `meta.generated` says of each response by its id who wrote it and how; `sample` counts from 0.
    """
    said = {(name, each.example, each.sample): each for name, rows in found.items() for each in rows}
    mine: dict[str, list[Answered]] = {}
    for each in answered:
        mine.setdefault(each.key, []).append(each)
    sampling = {name: getattr(config, name) for name in SAMPLING}
    answers = [(example, mine[example.key]) for example in prompts if example.key in mine]
    return [_record(config.keep, example, rows, said, origins, sampling) for example, rows in answers]


def _record(
    keep: bool,
    example: Example,
    rows: list[Answered],
    said: dict[tuple[str, str, int], Written],
    origins: dict[str, str],
    sampling: dict[str, Any],
) -> Example:
    taken = {response.id for response in example.responses} if keep else set()
    made: dict[str, Response] = {}
    facts: dict[str, dict[str, Any]] = {}
    for each in rows:
        place = each.response
        while place in taken or place in made:
            place += "x"
        sample = int(each.response.rpartition("-")[2])
        ended = said[each.model, each.key, sample]
        made[place] = Response(id=place, text=each.text, origin=origins[each.model])
        facts[place] = {"model": origins[each.model], "sample": sample, **sampling}
        facts[place] |= {"finish_reason": ended.finish_reason, "tokens": ended.tokens}
    meta = {key: value for key, value in example.meta.items() if keep or key not in ("generated", "rewards")}
    kept = meta.get("generated", {})
    meta["generated"] = (kept if isinstance(kept, dict) else {}) | facts
    responses = (*(example.responses if keep else ()), *made.values())
    preferences = example.preferences if keep else ()
    return example.model_copy(update={"responses": responses, "preferences": preferences, "meta": meta})


RECIPE = Recipe(
    name="generate",
    title="Generate responses",
    question="What do models answer to a dataset's prompts, and how good is it?",
    summary="Models of the registry or behind endpoints answer, sampled alike; rubric scores, pass@k and win rates follow, and the responses can become a dataset to annotate, judge or train on.",
    icon="list-plus",
    schema=GenerateConfig,
    run=run,
    tasks="pairwise",
    measure="Clipped rubric score",
    makes="into",
)
