"""Spans of steps: stored once for each step, read by step, kept for the newest steps."""

import pytest

from tests.team import ApiClient
from trainer.contracts import SpansData, StepSpan
from webapp.experiments.metrics import spans
from webapp.experiments.models import StepSpans

NONE = {"step": None, "seconds": None, "spans": [], "beside": [], "first": None, "last": None}


def spans_data(took: int = 2_000_000) -> SpansData:
    inner = (StepSpan(0, 1, -1, 0, took), StepSpan(0, 2, 0, 0, 500_000, 3))
    return SpansData(took=took, names=("learner", "", "updating"), spans=inner, beside=(StepSpan(0, 2, -1, 1, 2),))


def test_the_spans_of_a_step_come_in_and_are_read_again(run, trainer, team):
    api = ApiClient(team.researcher)
    path = f"/runs/{run.pk}/spans"
    assert api.get(path).json() == NONE
    sent = spans_data().model_dump(mode="json", exclude={"kind"})
    trainer.post(trainer.event("spans", 1, **sent), trainer.event("spans", 2, **sent))
    trainer.post(
        trainer.event("spans", 2, **spans_data(3_000_000).model_dump(mode="json", exclude={"kind"}))
    )  # a repeat
    newest = api.get(path).json()
    assert (newest["step"], newest["seconds"], newest["first"], newest["last"]) == (2, 3.0, 1, 2)
    assert newest["spans"] == [
        {"work": "learner", "name": "", "inside": None, "start": 0.0, "seconds": 3.0, "pieces": 1},
        {"work": "learner", "name": "updating", "inside": 0, "start": 0.0, "seconds": 0.5, "pieces": 3},
    ]
    assert [each["start"] for each in newest["beside"]] == [1e-6]
    assert api.get(f"{path}?step=1").json()["seconds"] == 2.0
    assert api.get(f"{path}?step=7").json() == NONE | {"first": 1, "last": 2}


def test_only_the_newest_steps_are_kept(run):
    last = spans.KEPT + 2 * spans.SWEPT
    for first in range(1, last, spans.SWEPT):
        spans.store(run.pk, {step: spans_data() for step in range(first, first + spans.SWEPT)})
    steps = list(StepSpans.objects.filter(run=run).order_by("step").values_list("step", flat=True))
    assert steps == list(range(2 * spans.SWEPT + 1, last + 1))


@pytest.mark.parametrize("start", [-1, 2_000_000])
def test_spans_outside_their_step_are_refused(start, trainer):
    sent = {"took": 2_000_000, "names": ["learner"], "spans": [[0, 0, -1, start, 1, 1]]}
    assert trainer.post(trainer.event("spans", 1, **sent)).status_code == 422
    assert not StepSpans.objects.exists()
