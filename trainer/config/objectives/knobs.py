"""The knobs of every objective, with defaults and bounds. They need no torch: forms, the calculator and the trainer share them.

The defaults are those of the sources; if a source has none, the help text says "ours".
"""

from collections.abc import Iterator
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from ..errors import ConfigInvalid, FieldProblem, item_text
from ..fields import Section, knob

AdvantageName = Literal["group_std", "centred", "leave_one_out", "remax", "batch"]
AggregationName = Literal["sequence", "token", "constant"]


# Bounds on ratios may be so wide that they have no effect: so an experiment can switch them off.
_WIDEST = 1e9
NO_CAP = _WIDEST


def _eps_low(default: float) -> Any:
    return knob(default, "Ratios below 1 - eps are clipped; at 1 or above, none is", ge=0, le=_WIDEST)


def _eps_high(default: float) -> Any:
    return knob(default, "Ratios above 1 + eps are clipped", ge=0, le=_WIDEST)


class Parameters(Section):
    """Base of the knobs of one objective. `problems` finds valid values that cannot work together."""

    def problems(self) -> Iterator[FieldProblem]:
        yield from ()


class Advantaged(Parameters):
    """The way in which the rewards of a group become advantages."""

    advantage: AdvantageName = knob("group_std", "How the rewards of a group become advantages")
    std_ddof: int = knob(
        0,
        "The variance is divided by G (0: of a population) or by G - 1 (1: of a sample, as in TRL)",
        ge=0,
        le=1,
        advanced=True,
    )
    std_eps: float = knob(0.0, "Added to the standard deviation; 1e-4 as in TRL", ge=0, le=1, advanced=True)


class Aggregated(Parameters):
    """The way in which the losses of the tokens become one number."""

    aggregation: AggregationName = knob(
        "sequence", "`sequence`: mean of the responses' means; `token`: mean of all tokens; `constant`: fixed divisor"
    )
    max_tokens: int | None = knob(
        None,
        "Divisor per response with aggregation `constant`: the longest response; a run fills it in",
        unit="tokens",
        ge=1,
        advanced=True,
        when=("aggregation", ("constant",)),
    )

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        if self.aggregation == "constant" and self.max_tokens is None:
            yield FieldProblem("max_tokens", "needed with aggregation 'constant', which divides by it")


class Popped(Parameters):
    """Bounds on the mismatch pi_old / pi_roll between trainer and sampler, inclusive."""

    pop_low: float | None = knob(None, "Smallest mismatch ratio that counts; empty: 1 / pop_high", ge=0, le=_WIDEST)
    pop_high: float = knob(2.0, "Largest mismatch ratio that counts", gt=0, le=_WIDEST)
    pop_mode: Literal["mask", "weight"] = knob(
        "mask", "`mask`: tokens inside the bounds count fully; `weight`: by their mismatch ratio"
    )

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        low, high = self.pop_bounds
        if low > high:
            yield FieldProblem("pop_low" if self.pop_low is not None else "pop_high", f"no ratio is in [{low}, {high}]")

    @property
    def pop_bounds(self) -> tuple[float, float]:
        """The lower and the upper bound."""
        return (1.0 / self.pop_high if self.pop_low is None else self.pop_low), self.pop_high


class GrpoParameters(Advantaged, Aggregated):
    """GRPO and its variants: the policy's ratio, clipped.

    `weight_cap` truncates the importance weights of `decoupled` (truncated importance sampling: Ionides, 2008; for sampler
    and trainer of one policy Yao et al., 2025). 2 is verl's usual threshold, 3 TRL's. `dual_clip` is c of dual-clip PPO
    (Ye et al., 2020), whose authors take 3; it must be above 1, and above 1 + eps_high to leave PPO's own clip alone.
    """

    eps_low: float = _eps_low(0.2)
    eps_high: float = _eps_high(0.2)
    kl_beta: float = knob(0.0, "Weight of the KL penalty to the reference policy (k3 estimate)", ge=0, le=1000)
    decoupled: bool = knob(
        False,
        "Weigh each token by the trainer's probability divided by the sampler's (decoupled importance sampling)",
        advanced=True,
    )
    weight_cap: float = knob(
        2.0,
        "Largest weight of a token, with `decoupled`; 2 to 3 is usual; a very large number sets no limit",
        ge=1,
        le=_WIDEST,
        advanced=True,
        when=("decoupled", ()),
    )
    dual_clip: float | None = knob(
        None,
        "Largest ratio for a token with a negative advantage; 3 is usual; empty: no limit",
        gt=1,
        le=_WIDEST,
        advanced=True,
    )


class DrGrpoParameters(GrpoParameters):
    advantage: AdvantageName = knob("centred", "How the rewards of a group become advantages")
    aggregation: AggregationName = knob("constant", "`constant` divides by responses x max_tokens")


class DapoParameters(GrpoParameters):
    aggregation: AggregationName = knob("token", "`token`: every token of the batch counts the same")
    eps_high: float = _eps_high(0.28)


class GspoParameters(GrpoParameters):
    """The clip acts on the ratio of whole responses, which is far closer to 1 than a token's."""

    eps_low: float = _eps_low(3e-4)
    eps_high: float = _eps_high(4e-4)


class PoppedClip(Aggregated, Popped):
    """IcePop's loss: the mismatch weight times the clipped ratio."""

    eps_low: float = _eps_low(0.2)
    eps_high: float = _eps_high(0.28)


class IcepopParameters(Advantaged, PoppedClip):
    level: Literal["token", "sequence"] = knob(
        "token", "`sequence`: both ratios are of whole responses, length-normalised (ERNIE's baseline)", advanced=True
    )


class DistillParameters(PoppedClip):
    """IcePop with the teacher's advantage: no rewards, so no estimator."""


class MiscParameters(Advantaged, Aggregated, Popped):
    pop_mode: Literal["mask", "weight"] = knob(
        "weight", "`mask`: tokens inside the bounds count fully; `weight`: by their mismatch ratio"
    )
    eps_low: float = _eps_low(3e-4)
    eps_high: float = _eps_high(4e-4)
    token_gradient: bool = knob(False, "Give each token the gradient of its own weight, not of the mean weight")


class DoubleSidedParameters(Advantaged, Aggregated):
    advantage: AdvantageName = knob("centred", "How the rewards of a group become advantages")
    aggregation: AggregationName = knob("token", "`token`: every token of the batch counts the same")
    eps_low: float = _eps_low(0.2)
    eps_high: float = _eps_high(0.28)


class KimiParameters(Advantaged):
    advantage: AdvantageName = knob("centred", "How the rewards of a group become advantages")
    alpha: float = knob(0.5, "Smallest ratio with a policy gradient (ours)", gt=0, lt=1)
    beta: float = knob(2.0, "Largest ratio with a policy gradient (ours)", gt=1, le=_WIDEST)
    tau: float = knob(1e-3, "Weight of the squared log-ratio (ours)", ge=0, le=1000)


class OaplParameters(Parameters):
    beta1: float = knob(1.0, "Smoothing of the value: 0 gives the group's best reward, a large number its mean", ge=0)
    beta2: float = knob(1e-3, "Scale of the log-ratio in the regression", gt=0, le=1000)


class SftParameters(Aggregated):
    aggregation: AggregationName = knob("token", "`token`: every token of the batch counts the same")


class DpoParameters(Parameters):
    beta: float = knob(0.1, "Scale of the log-ratio to the reference", gt=0, le=1000)
    sft_weight: float = knob(0.2, "Weight of the chosen response's mean token loss", ge=0, le=1000)


class BradleyTerryParameters(Parameters):
    margin: float = knob(0.0, "The least distance that the two scores should have", ge=-1000, le=1000)
    centre: float = knob(0.0, "Weight of the squared sum of the two scores, which pulls their mean to 0", ge=0, le=1000)


P = TypeVar("P", bound=Parameters)


def parse_parameters(schema: type[P], raw: dict[str, Any]) -> P:
    """Checked parameters; None means the default. Raises ConfigInvalid with every problem, by field."""
    given = {name: value for name, value in raw.items() if value is not None}
    try:
        params = schema.model_validate(given)
    except ValidationError as error:
        known = ", ".join(schema.model_fields)
        raise ConfigInvalid(
            [
                FieldProblem(
                    ".".join(str(part) for part in item["loc"]),
                    f"unknown here; known: {known}" if item["type"] == "extra_forbidden" else item_text(item),
                )
                for item in error.errors()
            ]
        ) from error
    problems = list(params.problems())
    if problems:
        raise ConfigInvalid(problems)
    return params
