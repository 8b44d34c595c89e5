"""The part of the rubric that a policy sees while it is sampled (RuscaRL)."""

from typing import Literal

from ..fields import Section, knob

RatioMode = Literal["unscaffolded", "corrected", "scaffolded"]


class Scaffold(Section):
    """RuscaRL: the rollout prompt shows a part of the rubric. Responses of one group see less and less of it, and later steps see less."""

    group: Literal["linear", "binary", "none"] = knob("linear", "How the share differs within a group")
    binary_n: int = knob(
        1,
        "With `binary`: how many responses of a group see the scaffold",
        unit="responses",
        ge=0,
        when=("group", ("binary",)),
    )
    step: Literal["sigmoid", "constant", "linear", "power"] = knob("sigmoid", "How the share falls over the run")
    alpha: float = knob(125.0, "Steepness of the sigmoid", gt=0, advanced=True, when=("step", ("sigmoid",)))
    t0: float = knob(
        0.2,
        "The point of the run at which the sigmoid is one half",
        unit="of the run",
        ge=0,
        le=1,
        when=("step", ("sigmoid",)),
    )
    power: float = knob(2.0, "Exponent n of (1 - t)^n, with `power`", gt=0, when=("step", ("power",)))
    ratio_mode: RatioMode = knob(
        "unscaffolded", "Whether the prompt contains the scaffold when log-probabilities are computed", advanced=True
    )
