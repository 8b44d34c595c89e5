"""Formulas of rewards from judgement, with inputs by name. The functions themselves are tested in their own rooms."""

import pytest

from .test_command import problem, value


def test_mams_reward() -> None:
    scores = {"score_chosen": 0.8, "score_rejected": 0.3, "quality": 3}
    assert value("mams_reward", **scores, format_ok=True, l_pref=1, l_llm=1) == 4
    assert value("mams_reward", **scores, format_ok=0, l_pref=2, l_llm=0.5) == 2 + 1.5 - 1
    nothing = {"score_chosen": None, "score_rejected": None, "quality": None, "l_pref": 1, "l_llm": 1}
    assert value("mams_reward", **nothing, format_ok=False) == -2
    assert value("mams_reward", **nothing, format_ok=True) is None
    assert problem("mams_reward", {**scores, "quality": 4.1, "format_ok": True, "l_pref": 1, "l_llm": 1}).startswith(
        "quality: "
    )


def test_rationale_rewards() -> None:
    # hits at ranks 1 and 3: (1/1 + 2/3) / 3 human reasons
    matrix = [[0.9, 0, 0], [0, 0.2, 0], [0, 0, 0.8]]
    assert value("rationale_ap", matrix=matrix, correct=False) == pytest.approx(5 / 9)
    assert value("rationale_hybrid", matrix=matrix, correct=True) == pytest.approx(5 / 9)
    assert value("rationale_hybrid", matrix=matrix, correct=False) == 0
    assert value("rationale_ap", matrix=matrix, threshold=0) == 1  # read literally, the paper counts 0.2 as a hit too
    assert value("rationale_hybrid", matrix=matrix, correct=True, threshold=0.8) == pytest.approx(1 / 3)


def test_without_human_reasons_there_is_no_rationale_reward_and_without_model_reasons_it_is_0() -> None:
    for name in ("rationale_ap", "rationale_hybrid"):
        assert value(name, matrix=[], correct=True) is None
        assert value(name, matrix=[[], []], correct=True) == 0
        assert problem(name, {"matrix": [[1, 0], [1]], "correct": True}).startswith("matrix[1]: has 1")
        assert problem(name, {"matrix": [[1.5]], "correct": True}).startswith("matrix[0][0]: ")


def test_verdicts_in_both_orders() -> None:
    assert value("remax_pairwise", sample_first="first", sample_second="tie") == 0.5
    assert value("remax_pairwise", sample_first=None, sample_second="tie") is None
    assert value("swap_consistent", given="tie", swapped="tie") == "tie"
    assert value("swap_consistent", given="A", swapped="A") is None
    assert value("swap_consistent", given="A", swapped=None) is None
    assert problem("swap_consistent", {"given": "a", "swapped": "B"}).startswith("given: ")


def test_cohens_d() -> None:
    assert value("cohens_d", chosen=[1, 2, 3], rejected=[0, 0, 0]) == 2
    assert value("cohens_d", chosen=[1, 2, 3, None], rejected=[0, 0, 0, 9]) == 2
    assert value("cohens_d", chosen=[0.3, 0.6], rejected=[0.2, 0.5]) is None
    assert value("cohens_d", chosen=[], rejected=[]) is None


def test_likert_score() -> None:
    assert value("likert_score", ratings=[10, 1], weights=[2, 1]) == pytest.approx(2 / 3)
    assert value("likert_score", ratings=[10, 10], weights=[5, -2]) == 1
    assert value("likert_score", ratings=[10, None], weights=[2, 1]) is None
    assert problem("likert_score", {"ratings": [10, 1], "weights": [1, -1]}).startswith("weights: sum to 0")
    assert problem("likert_score", {"ratings": [], "weights": []}).startswith("weights: sum to 0")
    assert problem("likert_score", {"ratings": [0.5], "weights": [1]}).startswith("ratings[0]: ")
    assert problem("likert_score", {"ratings": [1], "weights": [1, 2]}).startswith("weights: has 2")


def test_a_group_is_filled_up_when_more_than_half_of_it_is_valid() -> None:
    assert value("pad_group", valid=[True, False, True, True, False]) == [0, 2, 3, 0, 2]
    assert value("pad_group", valid=[1, 0, 1]) == [0, 2, 0]
    assert value("pad_group", valid=[3, 1, 0], size=4) == [3, 1, 0, 3]
    assert value("pad_group", valid=[True, False]) is None  # exactly half is not more than half
    assert value("pad_group", valid=[], size=2) is None


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"valid": []}, "valid: is empty"),
        ({"valid": [True, False], "size": 3}, "valid: has 2 entries for a group of 3"),
        ({"valid": [1, 2]}, "valid[1]: is the place 2"),
        ({"valid": [0, 4], "size": 4}, "valid[1]: expected a place from 0 to 3"),
        ({"valid": [1, 1], "size": 4}, "valid[1]: expected a place"),
        ({"valid": [1, True], "size": 4}, "valid[1]: expected a place"),
        ({"valid": [-1], "size": 4}, "valid[0]: "),
        ({"valid": [0], "size": 0}, "size: "),
    ],
)
def test_places_that_no_group_has(record, said) -> None:
    assert problem("pad_group", record).startswith(said)


def test_a_reward_out_of_its_parts() -> None:
    parts = {"outcome": 1, "rc": 0.5, "format": 1}
    assert value("reward_expression", expression="outcome * rc + 0.1 * format", parts=parts) == pytest.approx(0.6)
    assert value("reward_expression", expression="rc / outcome", parts={**parts, "outcome": 0}) is None
    assert value("reward_expression", expression="rc", parts={"rc": {"value": None, "why": "late"}}) is None
    assert value("reward_expression", expression="gate(outcome, rc)", parts={"outcome": 0, "rc": None}) == 0
    assert problem("reward_expression", {"expression": "rc + x", "parts": parts}).startswith(
        "expression: column 6: unknown"
    )
    assert problem("reward_expression", {"expression": "1", "parts": {"rc": "x"}}).startswith(
        "parts.rc: expected a number"
    )
    assert problem("reward_expression", {"expression": "1", "parts": {"rc": {"why": ""}}}).startswith(
        "parts.rc.value: "
    )
