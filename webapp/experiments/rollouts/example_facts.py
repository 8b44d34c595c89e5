"""The rollouts that an example was made of, for its page."""

from collections.abc import Iterator
from typing import Any

from django.urls import reverse

from webapp.datasets.exploration.example_facts import ExampleFact, provide
from webapp.datasets.models import Example

from ..queries import runs
from .sent_examples import META, SOURCE

SHOWN = 20


@provide
def rollouts(example: Example) -> Iterator[ExampleFact]:
    """Anybody may write `meta` into a file, so a place counts only if the run is of the example's workspace."""
    if example.source != SOURCE:
        return
    named = example.content.get("meta", {}).get(META)
    places = [each for each in named[:SHOWN] if _is_place(each)] if isinstance(named, list) else []
    found = runs(example.dataset.workspace_id).in_bulk({each["run"] for each in places})
    for each in places:
        if run := found.get(each["run"]):
            where = f"{reverse('run_tab', args=[run.pk, 'rollouts'])}?step={each['step']}&phase={each['phase']}"
            note = f"step {each['step']}, prompt {each['group'] + 1}, response {each['index'] + 1}"
            yield ExampleFact("Rollout", f"{run.experiment.name} · {run}", f"{where}&group={each['group']}", note)


def _is_place(given: Any) -> bool:
    numbers = ("run", "step", "group", "index")
    return (
        isinstance(given, dict)
        and all(type(given.get(name)) is int and 0 <= given[name] < 2**31 for name in numbers)
        and given.get("phase") in ("train", "eval")
    )
