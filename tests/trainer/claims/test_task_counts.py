"""The counts of the constructed tasks, with which the form of a study compares its settings, are those of the tasks."""

import json

from scripts.claim_tasks import all_tasks
from trainer.metrics.claims import PLANS
from trainer.metrics.claims.task_counts import FILE, counts_of


def test_the_stored_counts_are_those_of_the_tasks() -> None:
    assert json.loads(FILE.read_text()) == all_tasks(), "run `python -m scripts.claim_tasks`"


def test_every_task_that_a_plan_asks_for_is_counted() -> None:
    for plan in PLANS.values():
        if plan.constructed:
            assert counts_of(plan.task, plan.constructed.wanted)["train"]["examples"] > 0
