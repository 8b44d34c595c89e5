"""Generation: the answers of models to a dataset's prompts, and their scores."""

from collections.abc import Sequence
from typing import Any, ClassVar

from trainer.config.fields import knob
from trainer.contracts import Example, Response
from trainer.metrics.estimate import proportion

from ... import report as r
from ..base import Context, FoundCase, Recipe, RecipeOutcome, WrittenText
from . import policy, sampled
from .corrected import CorrectedConfig
from .policy import ScoredAnswer
from .sampled import NOBODY, SampledConfig

SAMPLING = ("temperature", "top_p", "max_new_tokens", "stop", "seed")


class GenerateConfig(SampledConfig, CorrectedConfig):
    """Models that answer the same prompts, sampled in the same way; the others are compared with the first."""

    spared: ClassVar[tuple[str, ...]] = (*CorrectedConfig.spared, "sampler", "into", "keep", "embeddings")
    novelty: ClassVar[bool] = False

    pairwise: int | None = knob(
        None,
        "Compares two models' first responses to each prompt; empty: their scores do",
        source="judges:pairwise,pairwise_rubric",
    )
    embeddings: bool = knob(False, "Also measure how far apart in meaning the responses to a prompt are")
    into: str = knob("", "Dataset, existing or new, that gets the responses as a version; empty: none", max_length=120)
    keep: bool = knob(False, "With a dataset: keep the responses and preferences that the prompts have already")


def run(context: Context) -> RecipeOutcome:
    config = context.config
    writers = config.writers
    names = sampled.names_of(context, writers)
    prompts = sampled.prompts(context)
    found = dict(zip(names, context.written(writers, prompts), strict=True))
    answered, unanswered = sampled.split_responses(names, writers, found, prompts)
    policy.decide(context, answered)
    report = policy.report(
        context, names, answered, {}, dict.fromkeys(names, "only a run has the weights from before training")
    )
    _add(report, names, answered, unanswered, found)
    cases = [*policy.cases(answered), *unanswered]
    origins = {name: context.writer_name(each) for name, each in zip(names, writers, strict=True)}
    records = _records(config, prompts, answered, found, origins) if config.into else ()
    return RecipeOutcome(report, cases, records)


def _add(
    report: r.Report,
    names: list[str],
    answered: list[ScoredAnswer],
    unanswered: list[FoundCase],
    found: dict[str, list[WrittenText]],
) -> None:
    """Adds what is known beyond scores: who answered, and how the responses ended."""
    if not any(each.rubric for each in answered):
        asked, got = len(answered) + len(unanswered), len(answered)
        report.headline = r.headline("Prompts answered", r.estimate(proportion(got, asked)))
    if unanswered:
        report.coverage.append(("Without a response", r.count(len(unanswered), NOBODY, tone="warn")))
    report.blocks.append(sampled.ends(names, found))


def _records(
    config: Any,
    prompts: Sequence[Example],
    answered: Sequence[ScoredAnswer],
    found: dict[str, list[WrittenText]],
    origins: dict[str, str],
) -> list[Example]:
    """The prompts with their generated responses; those without a response are left out.

    `meta.generated` says for each response id who wrote it and how; `sample` counts from 0.
    """
    said = {(name, each.example, each.sample): each for name, rows in found.items() for each in rows}
    mine: dict[str, list[ScoredAnswer]] = {}
    for each in answered:
        mine.setdefault(each.key, []).append(each)
    sampling = {name: getattr(config, name) for name in SAMPLING}
    answers = [(example, mine[example.key]) for example in prompts if example.key in mine]
    return [_record(config.keep, example, rows, said, origins, sampling) for example, rows in answers]


def _record(
    keep: bool,
    example: Example,
    rows: list[ScoredAnswer],
    said: dict[tuple[str, str, int], WrittenText],
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
    question="What do models answer to a dataset's prompts, and how good are the answers?",
    summary="Models of the registry or behind endpoints answer, sampled alike; rubric scores, pass@k and win rates follow, and the responses can become a dataset to annotate, judge or train on.",
    icon="list-plus",
    schema=GenerateConfig,
    run=run,
    tasks="pairwise",
    measure="Clipped rubric score",
    makes="into",
)
