"""The measurements of a run after its last step."""

from pathlib import Path
from typing import Any

import pytest

from trainer.config import ConfigInvalid
from trainer.metrics.claims.responses import key_of, measure_of, measured_responses

from ..conftest import metrics_of, small_config, whole_and_resumed

CLOSING: dict[str, Any] = {"evaluation": {"every": 0, "closing": {"samples": 4, "passed": 0.5}}}


def test_a_resumed_run_measures_the_same_at_its_end(examples_file: Path, tiny_dir: Path, tmp_path: Path) -> None:
    config = small_config(**CLOSING, scaffold=None)
    whole, broken = whole_and_resumed(config, examples_file, tiny_dir, tmp_path, after=2)
    expected = metrics_of(whole)
    assert metrics_of(broken) == {place: value for place, value in expected.items() if place[0] >= 3}
    closing = {key: value for (step, key), value in expected.items() if key.startswith("closing/")}
    assert {step for step, key in expected if key.startswith("closing/")} == {4}, "once, after the last step"
    powers = (1, 2, 4)
    assert {key for key in closing if "pass_at" in key} == {f"closing/pass_at_{k}" for k in powers}
    assert closing["closing/best_of_1"] == pytest.approx(closing["closing/score"])
    assert [closing[f"closing/best_of_{n}"] for n in powers] == sorted(closing[f"closing/best_of_{n}"] for n in powers)
    assert closing["closing/entropy"] > 0 and closing["closing/novelty"] > 0


def test_measures_are_spelled_as_metrics_and_back() -> None:
    for measure in ("score", "pass@16", "best@4", "novel>2", "self_bleu_diversity"):
        key = key_of(measure)
        assert measure_of(key) == measure and not set("@<>= ") & set(key)
    found = measured_responses({"closing/pass_at_4": {4: 0.5, 8: 0.75}, "eval/rubric_score": {0: 0.4, 4: 0.1}})
    assert found == {"pass@4": 0.75, "drawdown": pytest.approx(0.3), "entropy_rise": None, "entropy_fall": None}


def test_processes_that_train_together_cannot_compare_with_the_untrained_model() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        small_config(**CLOSING, optim={"processes": 2})
    assert [problem.path for problem in caught.value.problems] == ["evaluation.closing"]
