"""The variety of a model's responses, and their distance from those before training (RuscaRL, 2025)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING

from trainer.metrics import policy as bench
from trainer.metrics.estimate import Estimate, undefined_estimate

from ... import report as r
from ..base import Context, NotMeasured, tag
from .blocks import Models, by_prompt

if TYPE_CHECKING:
    from .policy import ScoredAnswer

MOST_PROMPTS = 200  # Self-BLEU grows with the square of the responses
BOUNDS = (2.0, 10.0, 100.0)


def measure_novelty(context: Context, by_model: Models) -> dict[str, str]:
    """Gives each response of a run its rho. Returns model -> why it has none."""
    reasons = {}
    for choice in context.config.responses:
        if not context.config.novelty:
            reasons[choice.title] = "not asked for"
        elif choice.run is None:
            reasons[choice.title] = "responses of a dataset have no weights to compare"
        else:
            try:
                known = context.novelty(choice.run, choice.step)
            except NotMeasured as why:
                reasons[choice.title] = str(why)
                continue
            for each in by_model[choice.title]:
                each.rho = known[each.place]
    return reasons


def table(context: Context, by_model: Models, reasons: Mapping[str, str]) -> Iterator[r.Table]:
    texts = {name: _texts(answered) for name, answered in by_model.items()}
    meaning = _meaning(context, texts)
    if all(len(listed) < 2 for found in texts.values() for listed in found.values()) and not context.config.novelty:
        return
    rows = [
        [
            r.text(name, tag("model", name)),
            r.estimate(bench.diversity(list(texts[name].values())), tag("model", name), unit="points"),
            r.estimate(meaning[name], tag("model", name), unit="points"),
            *(
                r.estimate(each, tag("model", name), unit=unit)
                for each, unit in _novelty(answered, reasons.get(name, ""))
            ),
            *_where_novel(answered, reasons.get(name, "")),
            _gain(by_model, name, reasons.get(name, "")),
        ]
        for name, answered in by_model.items()
    ]
    columns = [
        ("Model", ""),
        ("Wording", "1 - Self-BLEU of the responses to a prompt; 1: no words in common"),
        ("Meaning", "mean cosine distance between the embeddings of the responses to a prompt"),
        ("Novelty", "median over responses of rho, how much likelier one is than before training, per token"),
        *[(f"Above {bound:g}", f"share of responses with rho above {bound:g}") for bound in BOUNDS],
        ("Score where novel", "clipped score of the tenth of responses with the highest rho"),
        ("Score elsewhere", "clipped score of the other responses with a rho"),
        (
            "Gain where novel",
            "change of the clipped score on the tenth of prompts with the highest rho, from the first model",
        ),
    ]
    most = max(len({each.key for each in answered}) for answered in by_model.values())
    cut = f" Variety is that of the first {MOST_PROMPTS} prompts." if most > MOST_PROMPTS else ""
    note = f"Variety needs two responses to a prompt. Novelty compares a run's responses under its weights before and after.{cut}"
    yield r.Table("Variety and novelty", columns, rows, note)


def _texts(answered: Sequence["ScoredAnswer"]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for each in answered:
        found[each.key].append(each.text)
    return dict(list(found.items())[:MOST_PROMPTS])


def _meaning(context: Context, texts: dict[str, dict[str, list[str]]]) -> dict[str, Estimate]:
    """The estimates by model. All are measured at once, because the process takes long to start."""
    if not context.config.embeddings:
        return dict.fromkeys(texts, undefined_estimate("not asked for"))
    places = [(name, key) for name, found in texts.items() for key in found]
    try:
        measured = context.embedding_diversity({str(at): texts[name][key] for at, (name, key) in enumerate(places)})
    except NotMeasured as why:
        return {name: undefined_estimate(str(why), missing=len(found)) for name, found in texts.items()}
    by_model: dict[str, list[float | None]] = {name: [] for name in texts}
    for at, (name, _) in enumerate(places):
        by_model[name].append(measured[str(at)])
    return {name: bench.meaning_diversity(found) for name, found in by_model.items()}


def _novelty(answered: Sequence["ScoredAnswer"], reason: str) -> Iterator[tuple[Estimate, r.Unit]]:
    if reason:
        yield undefined_estimate(reason, missing=len(answered)), "number"
        yield from ((undefined_estimate(reason, missing=len(answered)), "share") for _ in BOUNDS)
        return
    known = [(each.rho, each.key) for each in answered if each.rho is not None]
    found, prompts = bench.novelty_of([rho for rho, _ in known]), [key for _, key in known]
    yield bench.median_novelty(found, prompts, len(answered) - len(known)), "number"
    shares = bench.novel_shares(found, prompts)
    yield from ((shares[bound], "share") for bound in BOUNDS)


def _where_novel(answered: Sequence["ScoredAnswer"], reason: str) -> Iterator[r.Cell]:
    known = [(each.rho, each.value, each.key) for each in answered if each.rho is not None]
    if reason or not known:
        yield from (r.number(None, why=reason or "no response has a token") for _ in range(2))
        return
    rho, values, keys = zip(*known, strict=True)
    yield from (
        r.estimate(each, tag("model", answered[0].model)) for each in bench.scores_by_novelty(rho, values, keys)
    )


def _gain(by_model: Models, name: str, reason: str) -> r.Cell:
    first = next(iter(by_model))
    if name == first:
        return r.number(None, why="the first model")
    if reason:
        return r.number(None, why=reason)
    rho: dict[str, list[float]] = defaultdict(list)
    for each in by_model[name]:
        if each.rho is not None:
            rho[each.key].append(each.rho)
    means = {key: mean(values) for key, values in rho.items()}
    return r.estimate(
        bench.gain_at_novelty(means, by_prompt(by_model[name]), by_prompt(by_model[first])),
        tag("model", name),
        unit="gap",
    )
