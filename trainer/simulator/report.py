"""The numbers of a simulated run. An undefined number is None, never 0."""

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from trainer.scheduling import SampleId, Train
from trainer.scheduling.rules import PolicyName

from .config import Simulation
from .draws import Draws
from .simulate import ScheduleRecord


def summary(config: Simulation, policy: PolicyName, record: ScheduleRecord, draws: Draws) -> dict[str, Any]:
    """Speeds are taken after the warm-up. `load` is the share of all engine places that decode (LongCat-2601's request load). Delays are in
    steps, from the step that the order of the data assigns.
    """
    return {
        "policy": policy,
        "engines": config.engines(policy),
        **_speed(config, record),
        "load": record.slot_s / (record.engine_s * config.engine.slots),
        "engines_busy": record.busy_s / record.engine_s,
        "learner_busy": record.learner_s / record.done_at[-1],
        **_staleness(record.steps),
        **_drops(record),
        "versions_per_response": _mean(record.versions),
        **_bias(config, record, draws),
        **_domains(config, record.steps),
    }


def _speed(config: Simulation, record: ScheduleRecord) -> dict[str, Any]:
    first = config.warmup_steps
    # Steps count by their ends: a batch that was ready before the warm-up ended would falsify the speed.
    begun = record.done_at[first - 1] if first else 0.0
    seconds, steps = record.done_at[-1] - begun, len(record.done_at) - first
    return {
        "steps_per_hour": 3600 * steps / seconds,
        "tokens_per_s": sum(record.tokens[first:]) / seconds,
        "hours": record.done_at[-1] / 3600,
    }


def _staleness(steps: Sequence[Train]) -> dict[str, Any]:
    ages = Counter(age for train in steps for group in train.groups for age in group.staleness)
    total = sum(ages.values())
    return {
        "staleness_mean": sum(age * n for age, n in ages.items()) / total if total else None,
        "staleness_max": max(ages) if ages else None,
        "staleness": {str(age): ages[age] / total for age in sorted(ages)},
    }


def _drops(record: ScheduleRecord) -> dict[str, Any]:
    stale = sum(drop.index is not None and "steps old" in drop.reason for drop in record.drops)
    responses = sum(drop.index is not None for drop in record.drops)
    return {
        "dropped_stale": stale,
        "dropped_crashed": responses - stale,
        "dropped_groups": sum(drop.index is None for drop in record.drops),
        "crashes": record.crashes,
    }


def _bias(config: Simulation, record: ScheduleRecord, draws: Draws) -> dict[str, Any]:
    """The difference between the lengths that are trained on and the lengths of the data, and how much the order changes."""
    size = config.batch.prompts
    when = {group.number: train.step for train in record.steps for group in train.groups}
    trained = [
        draws.tokens(SampleId(group.number, place))
        for train in record.steps
        for group in train.groups
        for place in group.rows[: group.valid]
    ]
    planned = {number: _length(draws, number) for number in range(size * len(record.steps))}
    delays = {number: step - (number // size + 1) for number, step in when.items()}
    long = sorted(planned, key=lambda number: -planned[number])[: max(1, len(planned) // 10)]
    first = range(size * min(5, len(record.steps)))
    early = [group.number for train in record.steps[:5] for group in train.groups]
    return {
        "tokens_mean": _mean(trained),
        "length_ratio": _ratio(_mean(trained), _mean_length(draws, list(planned))),
        "length_ratio_first_5": _ratio(_mean_length(draws, early), _mean_length(draws, first)),
        "in_order": sum(delay == 0 for delay in delays.values()) / len(delays) if delays else None,
        "delay_longest_tenth": _mean([delays[number] for number in long if number in delays]),
        "longest_tenth_trained": sum(number in delays for number in long) / len(long),
    }


def _domains(config: Simulation, steps: Sequence[Train]) -> dict[str, Any]:
    """The share of each domain in what was trained on, and its share of the data."""
    if not config.domains:
        return {}
    found = Counter(group.domain for train in steps for group in train.groups)
    total, asked = sum(found.values()), sum(domain.share for domain in config.domains.values())
    shares = {name: (found[name] / total, domain.share / asked) for name, domain in config.domains.items()}
    return {"domains": {name: {"trained": got, "data": wanted} for name, (got, wanted) in shares.items()}}


def _length(draws: Draws, number: int) -> float:
    return statistics.fmean(draws.tokens(SampleId(number, place)) for place in range(draws.size(number)))


def _mean_length(draws: Draws, groups: Sequence[int]) -> float | None:
    """The mean length over all responses of the groups; None without groups."""
    if not groups:
        return None
    sizes = [draws.size(number) for number in groups]
    return statistics.fmean([_length(draws, number) for number in groups], sizes if len(set(sizes)) > 1 else None)


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None
