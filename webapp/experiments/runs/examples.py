"""The facts of an example that runs add to its page."""

from collections.abc import Iterator

from django.urls import reverse

from webapp.datasets.exploration.example_facts import ExampleFact, provide
from webapp.datasets.models import Example

from ..models import Run

SHOWN = 20


@provide
def runs(example: Example) -> Iterator[ExampleFact]:
    held = Run.objects.filter(dataset_version__members__example=example).select_related("dataset_version", "experiment")
    for run in held.order_by("-id")[:SHOWN]:
        version = f"on version {run.data.number}"
        yield ExampleFact(
            "Run", f"{run.experiment.name} · {run}", reverse("run", args=[run.pk]), f"{run.state}, {version}"
        )
