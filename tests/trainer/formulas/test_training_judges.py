"""Formulas of judges and rubric writers that are trained, with inputs by name."""

from typing import Any

import numpy as np
import pytest

from .test_command import GOOD, problem, value


def test_rewards_of_rubric_arm() -> None:
    assert value("rubric_arm_judge", verdict="A", label="A", format_ok=True) == 2
    assert value("rubric_arm_judge", verdict="tie", label="A", format_ok=True) == 1
    assert value("rubric_arm_judge", verdict=None, label="A", format_ok=False) == 0
    assert value("rubric_arm_judge", verdict="A", label="tie", format_ok=True) is None
    assert value("rubric_arm_writer", verdict="B", label="B") == 1
    assert value("rubric_arm_writer", verdict="tie", label="B") == 0
    assert value("rubric_arm_writer", verdict=None, label="B") is None
    assert problem("rubric_arm_judge", {"verdict": "C", "label": "A", "format_ok": True}).startswith("verdict: ")
    assert problem("rubric_arm_writer", {"verdict": "A", "label": None}).startswith("label: ")


def test_arm_variances() -> None:
    found = value("arm_variances", p=[0.5, 1], u_r=[[1, 2], [2, 0]], u_j=[[2, 2, 0], [1, 1, 0]])
    assert found == pytest.approx(
        {"var_judge": 1, "var_writer": 1.4375, "noise": 0.625, "inconsistency": 0.8125, "c1": 0.8125 / 2.625}
    )
    assert value("arm_variances", p=[], u_r=[], u_j=[]) is None
    assert value("arm_variances", p=[0], u_r=[[1]], u_j=[[1]])["c1"] is None
    assert problem("arm_variances", {"p": [0.5], "u_r": [], "u_j": [[1]]}).startswith("u_r: has 0")
    assert problem("arm_variances", {"p": [1, 1], "u_r": [[1], [1, 2]], "u_j": [[1], [1]]}).startswith("u_r[1]: has 2")
    with np.errstate(all="ignore"):  # like the command
        assert value("arm_variances", p=[1, 1], u_r=[[1e300], [-1e300]], u_j=[[1], [1]]) is None


def test_forms() -> None:
    assert value("rubric_format", text="1. The response is short. [Principle]", form="rubric_arm")["ok"]
    assert value("rubric_format", text="", form="mams") == {
        "ok": False,
        "reasons": ["there is no criterion"],
        "notes": [],
    }
    assert problem("rubric_format", {"text": "", "form": "haiku"}).startswith("form: ")
    judged = GOOD["judgement_format"]
    assert value("judgement_format", **judged) == {"ok": True, "reasons": [], "verdict": "A"}
    assert value("judgement_format", **{**judged, "criteria": ["at most 50 words"]})["ok"]
    assert not value("judgement_format", **judged, form="rubric_arm")["ok"]
    assert problem("judgement_format", {**judged, "criteria": []}).startswith("criteria: ")
    assert problem("judgement_format", {"text": "", "form": "rubric_arm"}).startswith("criteria: say how many")


def test_the_form_of_a_judgement_without_a_rubric() -> None:
    def read(text: str, **given: object) -> tuple[Any, ...]:
        found = value("judgement_format", text=text, **given)
        return found["ok"], found["verdict"], *found["reasons"]

    assert read("- short\nVerdict: B better") == read("- short\nVerdict: B better", form="lines")
    assert read("- short\nVerdict: B better") == (True, "B better")
    assert read('{"reasons": ["short"], "verdict": "B much better"}') == (True, "B much better")
    assert read('{"verdict": "tie", "reasons": ["alike"]}')[:2] == (False, "tie")
    assert "one JSON object" in read('Well: {"reasons": ["short"], "verdict": "tie"}', form="json")[2]
    assert read("Verdict: tie") == (False, "tie", "there is no reason")
    assert "and nothing else" in read("So:\n- short\nVerdict: tie")[2]
    assert read("- short") == (False, None, "there is no line that begins with “Verdict:”")
    assert read("- short\nVerdict: A")[:2] == (False, None)
    refused = problem("judgement_format", {"text": "", "criteria": 2, "form": "lines"})
    assert refused.startswith("criteria: leave this out")
