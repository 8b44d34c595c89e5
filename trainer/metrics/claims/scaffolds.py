"""A plan about the parts of RuscaRL. Torch-free."""

from typing import Any

from .plan import Arm, Claim, ClaimPart, Plan, Setting, merge_config
from .policies import COLUMNS, RUSCARL, TINY


def _arm(name: str, title: str, **scaffold: Any) -> Arm:
    return Arm(name, title, {"scaffold": scaffold})


RUSCARL_SHAPE = Plan(
    "ruscarl_shape",
    "RuscaRL's shapes and ratios, one at a time",
    RUSCARL.paper,
    arms=(
        _arm("linear", "RuscaRL: linear in a group, sigmoid over the run, ratios without the scaffold"),
        _arm("binary", "half of a group sees the scaffold, half none of it", group="binary", binary_n=4),
        _arm("same", "a whole group sees as much", group="none"),
        _arm("line", "falls linearly over the run", step="linear"),
        _arm("corrected", "ratios corrected for the scaffold", ratio_mode="corrected"),
        _arm("scaffolded", "ratios with the scaffold", ratio_mode="scaffolded"),
    ),
    claims=(
        Claim(
            "linear differences within a group beat the other shapes on the held-out score",
            (
                ClaimPart("over binary", "score", "linear", "binary"),
                ClaimPart("over none", "score", "linear", "same"),
            ),
        ),
        Claim(
            "a sigmoid over the run beats a line",
            (ClaimPart("score", "score", "linear", "line"),),
        ),
        Claim(
            "ratios without the scaffold beat the other two",
            (
                ClaimPart("over corrected", "score", "linear", "corrected"),
                ClaimPart("over scaffolded", "score", "linear", "scaffolded"),
            ),
        ),
    ),
    sizes={
        "tiny": Setting(
            merge_config(TINY, {"steps": 60}),
            (0, 1, 2, 3, 4),
            note="A random model of two layers that was taught to follow scaffolds, on a language of syllables (trainer/claims/toy.py).",
        )
    },
    columns=COLUMNS,
    summary="How much of the rubric each response of a group sees, how this falls over the run, and on which prompt "
    "the ratios are computed.",
)
