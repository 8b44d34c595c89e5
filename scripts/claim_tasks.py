"""Writes trainer/metrics/claims/tasks.json: what the constructed tasks of claims have for recipes to learn from.

The web side cannot make a task, so the form of a study compares its settings with these counts. A test counts them again.
Run it after changing a task: python -m scripts.claim_tasks
"""

import json
from collections import Counter
from typing import Any

from trainer.claims.tasks import TASKS
from trainer.contracts import Example, training_counts
from trainer.contracts.labels import Labels
from trainer.metrics.claims import PLANS, Setting
from trainer.metrics.claims.plan import Task
from trainer.metrics.claims.task_counts import FILE, name_of


def counted(task: Task, setting: Setting) -> dict[str, Any]:
    """The counts of the task's examples by split, and the tags and domains of its training examples."""
    examples = TASKS[task].examples(setting)
    train = [each for each in examples if each.split != "heldout"]
    sides = {"train": train, "heldout": [each for each in examples if each.split == "heldout"]}
    counts = {side: dict(sorted(_sum(rows).items())) for side, rows in sides.items()}
    tags = Counter(tag for each in train for tag in set(each.tags))
    domains = Counter(each.domain for each in train)
    labels = {"tags": Labels.of(tags), "domains": Labels.of(domains)}
    return counts | {
        "labels": {kind: {"counts": dict(found.counts), "others": found.others} for kind, found in labels.items()}
    }


def _sum(examples: list[Example]) -> Counter[str]:
    return sum((training_counts(each) for each in examples), Counter[str]())


def all_tasks() -> dict[str, Any]:
    """{name of a task: its counts} of all that a plan asks for."""
    asked = {(plan.task, plan.constructed.wanted): plan.constructed for plan in PLANS.values() if plan.constructed}
    return {name_of(task, wanted): counted(task, setting) for (task, wanted), setting in sorted(asked.items())}


if __name__ == "__main__":
    found = all_tasks()
    FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(f"{FILE.name}: {len(found)} tasks")
