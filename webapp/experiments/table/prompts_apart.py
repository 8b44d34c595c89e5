"""The held-out prompts on which two runs differ most, by the mean reward of their responses at each run's newest evaluation."""

from dataclasses import dataclass
from typing import Any

from django.db import connection

from trainer.metrics.estimate import Estimate, bootstrap_mean

from ..models import Run

MOST_PROMPTS = 100  # of one answer
TEXT = 300  # characters of a prompt

# from each step and phase directly to the previous one, so that the many responses of training are not read on the way
NEWEST = """
WITH RECURSIVE place AS (
    (SELECT step, phase FROM experiments_rollout WHERE run_id = %(run)s ORDER BY step DESC, phase DESC LIMIT 1)
    UNION ALL
    SELECT earlier.step, earlier.phase FROM place CROSS JOIN LATERAL (
        SELECT step, phase FROM experiments_rollout WHERE run_id = %(run)s AND (step, phase) < (place.step, place.phase)
        ORDER BY step DESC, phase DESC LIMIT 1
    ) AS earlier WHERE place.phase <> 'eval'
)
SELECT step FROM place WHERE phase = 'eval'
"""
# a response without a reward counts as missing, and a prompt with no reward at all has no mean
MEANS = """
SELECT example_key, avg(reward), count(reward), count(*) FROM experiments_rollout
WHERE run_id = %(run)s AND step = %(step)s AND phase = 'eval' GROUP BY example_key
"""
TEXTS = """
SELECT DISTINCT ON (example_key) example_key, left(content ->> 'prompt', %(most)s) FROM experiments_rollout
WHERE run_id = %(run)s AND step = %(step)s AND phase = 'eval' AND example_key = ANY(%(keys)s) ORDER BY example_key, "group", index
"""


@dataclass(frozen=True)
class PromptReward:
    """The mean reward of a prompt's responses; None if none has a reward. `missing`: responses without one."""

    mean: float | None
    n: int
    missing: int


@dataclass(frozen=True)
class PromptApart:
    key: str
    text: str
    first: PromptReward
    second: PromptReward
    difference: float


@dataclass(frozen=True)
class PromptsApart:
    """`steps`: of each run's newest evaluation, None if it has none. `shared`: prompts that both have; `unscored` of them have no reward in
    one of the runs and are in no difference."""

    steps: tuple[int | None, int | None]
    shared: int
    unscored: int
    only: tuple[int, int]
    mean: Estimate
    """Second minus first, over the shared prompts that both have a reward for."""
    prompts: list[PromptApart]


def between(first: Run, second: Run, most: int = MOST_PROMPTS) -> PromptsApart:
    """The largest |difference| first; of equals, in the order of their keys. Five queries at most."""
    steps = (_newest(first), _newest(second))
    a, b = (_means(run, step) for run, step in zip((first, second), steps, strict=True))
    shared = sorted(a.keys() & b.keys())
    differences = {
        key: right - left for key in shared if (left := a[key].mean) is not None and (right := b[key].mean) is not None
    }
    widest = sorted(differences, key=lambda key: (-abs(differences[key]), key))[:most]
    texts = _texts(first, steps[0], widest)
    return PromptsApart(
        steps=steps,
        shared=len(shared),
        unscored=len(shared) - len(differences),
        only=(len(a.keys() - b.keys()), len(b.keys() - a.keys())),
        mean=bootstrap_mean(list(differences.values()), empty="no prompt has a reward in both runs"),
        prompts=[PromptApart(key, texts.get(key, ""), a[key], b[key], differences[key]) for key in widest],
    )


def _newest(run: Run) -> int | None:
    """The step of the newest evaluation with responses."""
    found = _rows(NEWEST, run=run.pk)
    return int(found[0][0]) if found else None


def _means(run: Run, step: int | None) -> dict[str, PromptReward]:
    if step is None:
        return {}
    return {
        key: PromptReward(mean, scored, responses - scored)
        for key, mean, scored, responses in _rows(MEANS, run=run.pk, step=step)
    }


def _texts(run: Run, step: int | None, keys: list[str]) -> dict[str, str]:
    return dict(_rows(TEXTS, run=run.pk, step=step, keys=keys, most=TEXT)) if keys else {}


def _rows(statement: str, **given: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found
