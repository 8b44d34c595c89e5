"""Corrected means compared with the answers of ppi-python, which `python -m benchmarks.corrected_means --keep` wrote down."""

import json

import pytest
import scipy

from benchmarks.corrected_means import KEPT, PpiEstimate, Study, studies

ANSWERS = [PpiEstimate(**each) for each in json.loads(KEPT.read_text())["answers"]]
NORMAL = scipy.stats.norm.ppf(0.975)


def test_every_study_has_an_answer() -> None:
    drawn = studies()
    assert [(each.kind, len(each.people_L)) for each in drawn] == [(each.kind, each.labels) for each in ANSWERS]
    assert {each.kind for each in drawn} == {"share", "score", "unrelated"}


@pytest.mark.parametrize("study,answer", list(zip(studies(), ANSWERS, strict=True)))
def test_value_and_standard_error_are_those_of_ppi_python(study: Study, answer: PpiEstimate) -> None:
    ours = study.ours()
    assert ours.weight == pytest.approx(answer.weight, rel=1e-9), (
        "else it answered for other scores: run it with --keep"
    )
    assert ours.corrected.value == pytest.approx(answer.value, rel=1e-9)
    assert ours.corrected.low is not None and ours.corrected.high is not None
    n = answer.labels
    ours_se = (ours.corrected.high - ours.corrected.low) / 2 / scipy.stats.t.ppf(0.975, n - 2)
    theirs_se = (answer.high - answer.low) / 2 / NORMAL
    # it divides sums of squares by n, we by n - 2, and it takes the normal quantile: our interval is wider, by at most that much
    assert theirs_se < ours_se <= theirs_se * (n / (n - 2)) ** 0.5 * (1 + 1e-9)
