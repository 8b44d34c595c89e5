"""The constructed tasks of claims, counted: whether settings fit a task is known before it is made."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("tasks.json")
"""Made by `python -m scripts.claim_tasks`; a test counts the tasks again."""


def name_of(task: str, wanted: int) -> str:
    return f"{task}-{wanted}"


def counts_of(task: str, wanted: int) -> Mapping[str, Any]:
    """{"train": {count: n}, "heldout": {...}, "labels": {"tags": {"counts": {tag: n}, "others": n}, "domains": ...}}.

    The keys of counts are those of `trainer.contracts.training_counts`. Raises KeyError for a task that no plan asks for.
    """
    return _stored()[name_of(task, wanted)]


@cache
def _stored() -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text())
    return found
