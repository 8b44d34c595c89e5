"""Fields that all recipes for preferences have: which comparisons they use, and which they leave out."""

from typing import Any, Literal

from .fields import Section, knob
from .recipe import DataNeed


def scale_knob() -> Any:
    """The field for the scale whose ratings count as comparisons too."""
    return knob(
        "",
        "Ratings on the scale of this name count too: if one rater rated two answers, the higher rating is preferred",
        max_length=200,
    )


class PreferenceData(Section):
    max_tokens: int = knob(
        1024, "Pairs with a longer conversation are left out and counted", unit="tokens", ge=8, le=131072
    )
    scale: str = scale_knob()
    labels: Literal["share", "majority"] = knob(
        "share",
        "`share`: a pair's target is the share of its votes for each answer; a tie is half a vote for each. `majority`: the answer that most raters "
        "preferred, as if it were certain",
    )
    ties: Literal["leave_out", "half"] = knob(
        "leave_out",
        "How to treat pairs that have equally many votes for both answers; `half`: train on them as equals",
    )
    shuffle: bool = knob(True, "Shuffle the pairs again for each epoch")


NEEDS = (
    DataNeed(
        "pairs",
        "pairs with a preferred answer",
        left_out=(
            ("ties", "ties"),
            ("undecided", "pairs without a decision"),
            ("equal", "pairs of equal answers"),
        ),
    ),
)
