"""Pass rates: how often does a model solve each prompt? Curricula and budgets use the rates as the difficulty."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from trainer.config.fields import knob
from trainer.metrics import policy as bench
from trainer.metrics.estimate import Estimate, proportion

from ... import report as r
from ..base import Context, ModelPassRates, NothingToScore, Recipe, RecipeOutcome, tag
from . import blocks, policy, sampled
from .policy import ScoredAnswer
from .sampled import SampledConfig

Counts = Mapping[str, tuple[int, int]]
"""Key of an example -> (answers that passed, answers with a score)."""


class PassRateConfig(SampledConfig):
    """Models that answer each prompt several times, sampled as training would sample them."""

    samples: int = knob(8, "Answers to each prompt; with more answers, each pass rate is more precise", ge=2, le=64)
    temperature: float = knob(
        1.0, "Use the temperature of training, so that the rates are those that training has", ge=0, le=2
    )
    split: Literal["heldout", "train", ""] = knob("", "Split of the dataset; none: all prompts")
    threshold: float = knob(1.0, "An answer passes if its clipped score is at least this", gt=0, le=1)


def run(context: Context) -> RecipeOutcome:
    config = context.config
    names = sampled.names_of(context, config.writers)
    prompts = sampled.prompts(context)
    found = dict(zip(names, context.written(config.writers, prompts), strict=True))
    answered, unanswered = sampled.split_responses(names, config.writers, found, prompts)
    policy.decide(context, answered)
    by_model = {name: [each for each in answered if each.model == name] for name in names}
    keys = [example.key for example in prompts]
    counts = {name: _counts(keys, rows, config.threshold) for name, rows in by_model.items()}
    if not any(tried for mine in counts.values() for _, tried in mine.values()):
        raise NothingToScore(
            "No answer has a score, so there is no pass rate: give the prompts rubrics, with verifiers or a judge to decide them."
        )
    report = _report(counts, by_model, {example.key: example.domain for example in prompts}, config.threshold)
    report.blocks.append(sampled.ends(names, found))
    cases = [*policy.cases(answered), *unanswered]
    for case in cases:
        case.tags += _tags(*counts[case.subject["model"]][case.subject["example"]])
    rates = [
        ModelPassRates(context.writer_name(writer), config.samples, config.threshold, counts[name])
        for name, writer in zip(names, config.writers, strict=True)
    ]
    return RecipeOutcome(report, cases, pass_rates=rates)


def _report(
    counts: Mapping[str, Counts], by_model: blocks.Models, domains: Mapping[str, str], threshold: float
) -> r.Report:
    last = list(counts)[-1]
    return r.Report(
        headline=r.headline(f"Learnable by {last}", _share(last, counts[last], "learnable")),
        coverage=blocks.coverage([each for rows in by_model.values() for each in rows]),
        blocks=[_map(counts), _rates(counts), *_by_domain(counts, domains), *blocks.several(by_model, threshold)],
        entries=[
            r.Entry(name, r.estimate(_mean(mine), tag("model", name)), **r.measured_on(mine))
            for name, mine in counts.items()
        ],
    )


def _counts(keys: Sequence[str], rows: Sequence[ScoredAnswer], threshold: float) -> Counts:
    """The counts of every prompt. Answers without a score do not count as tries."""
    scores: dict[str, list[float]] = defaultdict(list)
    for each in rows:
        if each.clipped is not None:
            scores[each.key].append(each.clipped)
    return {key: (sum(score >= threshold for score in scores[key]), len(scores[key])) for key in keys}


def _reach(passed: int, tried: int) -> str:
    return "unknown" if not tried else "out" if not passed else "solved" if passed == tried else "learnable"


def _bin(passed: int, tried: int) -> str:
    """Tenths between none and all."""
    if passed in (0, tried):
        return "all" if passed else "none"
    tenth = passed * 10 // tried
    return f"{tenth / 10:g} to {(tenth + 1) / 10:g}"


BINS = ("none", *(f"{tenth / 10:g} to {(tenth + 1) / 10:g}" for tenth in range(10)), "all")


def _tags(passed: int, tried: int) -> list[str]:
    found = [tag("reach", _reach(passed, tried))]
    return [*found, tag("pass rate", _bin(passed, tried))] if tried else found


def _known(counts: Counts) -> list[tuple[int, int]]:
    return [each for each in counts.values() if each[1]]


def _mean(counts: Counts) -> Estimate:
    return bench.average_at_k(
        [[1.0] * passed + [0.0] * (tried - passed) if tried else [None] for passed, tried in counts.values()]
    )


def _share(name: str, counts: Counts, reach: str, *more: str) -> r.Cell:
    known = _known(counts)
    here = sum(_reach(*each) == reach for each in known)
    found = proportion(here, len(known), len(counts) - len(known), "no answer has a score")
    return r.estimate(found, tag("model", name), tag("reach", reach), *more)


def _map(counts: Mapping[str, Counts]) -> r.Table:
    rows = []
    for name, mine in counts.items():
        lost = len(mine) - len(_known(mine))
        mean = r.estimate(_mean(mine), tag("model", name))
        missing = r.count(lost, tag("model", name), tag("reach", "unknown"), tone="warn" if lost else "")
        shares = [_share(name, mine, reach) for reach in ("solved", "learnable", "out")]
        rows.append([r.text(name, tag("model", name)), mean, *shares, missing])
    columns = [
        ("Model", ""),
        ("Mean pass rate", "mean over prompts, with an interval by prompt"),
        ("Solved", "every answer passes"),
        ("Learnable", "some answers pass: their groups have an advantage to learn from"),
        ("Out of reach", "no answer passes"),
        ("Not known", "no answer has a score"),
    ]
    note = "Shares of the prompts with a pass rate. With few answers, a prompt that is sometimes solved can look out of reach."
    return r.Table("Map of the data", columns, rows, note)


def _rates(counts: Mapping[str, Counts]) -> r.Table:
    rows = []
    for each in BINS:
        cells = []
        for name, mine in counts.items():
            here = sum(_bin(*known) == each for known in _known(mine))
            cells.append(r.count(here, tag("model", name), tag("pass rate", each)))
        if any(cell["value"] for cell in cells):
            rows.append([r.text(each), *cells])
    note = "Prompts by the share of their answers that pass; the upper end of a range is not part of it."
    return r.table("Prompts by pass rate", ["Pass rate", *counts], rows, note)


def _by_domain(counts: Mapping[str, Counts], domains: Mapping[str, str]) -> Iterator[r.Table]:
    named = sorted({domain for domain in domains.values() if domain})
    if len(named) < 2:
        return
    rows = []
    for domain in named:
        parts = {
            name: {key: each for key, each in mine.items() if domains[key] == domain} for name, mine in counts.items()
        }
        cells = [_share(name, mine, "learnable", tag("domain", domain)) for name, mine in parts.items()]
        rows.append([r.text(domain, tag("domain", domain)), *cells])
    yield r.table("Learnable by domain", ["Domain", *counts], rows)


RECIPE = Recipe(
    name="pass_rate",
    title="Pass rates",
    question="Which prompts does a model solve always, sometimes or never?",
    summary="A model answers each prompt several times. The share that passes becomes a property of the dataset's examples: filter by it, and train on what is learnable.",
    icon="dices",
    schema=PassRateConfig,
    run=run,
    tasks="grading",
    measure="Mean pass rate",
)
