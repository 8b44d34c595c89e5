"""The kinds of phases. The kind of each recipe has only fields that have an effect in the recipe."""

import pytest

from trainer.config.sections import phase_kinds
from trainer.config.sections.phases import Phase

TIMED = ["name", "begins", "step", "window"]
POOL = ["prompts", "rate_above", "rate_up_to", "tags", "domains", "order", "data_share", "easy_share"]
RATE = ["learning_rate", "lr_times"]


def drawn(kind: type[Phase]) -> list[str]:
    """In the order of a form."""
    return list(kind.model_json_schema()["properties"])


def test_a_field_stands_behind_what_makes_it_to_be_read() -> None:
    measured = [*TIMED[:2], "metric", *TIMED[2:]]
    assert drawn(phase_kinds.FittingPhase) == [*measured, *POOL, *RATE]
    for kind in (phase_kinds.DistillPhase, phase_kinds.RoundPhase):
        assert drawn(kind) == [*measured, "temperature", "set_to", *POOL, *RATE]
    rewarded = drawn(phase_kinds.RewardedPhase)
    assert rewarded[: len(TIMED) + 2] == [*TIMED, "pass_rate", "correct"]
    at = rewarded.index("prompts")
    assert rewarded[at : at + len(POOL) + 2] == [*POOL, "uncertain_share", "verification"]
    assert set(rewarded) == set(phase_kinds.RewardedPhase.model_fields), "a field that no form draws"


@pytest.mark.parametrize(
    "kind", [phase_kinds.FittingPhase, phase_kinds.PairPhase, phase_kinds.DistillPhase, phase_kinds.RoundPhase]
)
def test_without_rewards_a_phase_has_no_field_of_rewards_and_says_why(kind: type[Phase]) -> None:
    for field in ("pass_rate", "correct", "lengths", "solved", "verification", "judged", "tried", "uncertain_share"):
        assert not hasattr(kind(), field)
        assert kind.refused(field, 1)
    assert not any(kind.refused(field, "same") for field in kind.model_fields)
