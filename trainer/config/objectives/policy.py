"""The objectives of the recipe `policy`: every policy objective of the catalogue, each with its own knobs.

Knobs, bounds and defaults are those of `knobs`; here each objective gets the name by which it is chosen.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from ..errors import FieldProblem
from ..fields import Section, knob
from . import knobs

DEFAULT = "grpo"
WHAT = "What is minimised"


class _Named(Section):
    @model_validator(mode="before")
    @classmethod
    def _null_means_default(cls, raw: Any) -> Any:
        return {key: value for key, value in raw.items() if value is not None} if isinstance(raw, dict) else raw


class Grpo(_Named, knobs.GrpoParameters):
    """Clipped token ratio; every response counts alike."""

    name: Literal["grpo"] = knob("grpo", WHAT)


class DrGrpo(_Named, knobs.DrGrpoParameters):
    """GRPO without its two divisions, by the deviation and by the length."""

    name: Literal["dr_grpo"] = knob("dr_grpo", WHAT)


class Dapo(_Named, knobs.DapoParameters):
    """Every token counts alike; the upper clip is wider than the lower."""

    name: Literal["dapo"] = knob("dapo", WHAT)


class Gspo(_Named, knobs.GspoParameters):
    """Ratio and clip are of whole responses."""

    name: Literal["gspo"] = knob("gspo", WHAT)


class Icepop(_Named, knobs.IcepopParameters):
    """GRPO that silences tokens on which trainer and sampler disagree."""

    name: Literal["icepop"] = knob("icepop", WHAT)


class Misc(_Named, knobs.MiscParameters):
    """GSPO scaled by the mean of IcePop's token weights."""

    name: Literal["misc"] = knob("misc", WHAT)


class DoubleSided(_Named, knobs.DoubleSidedParameters):
    """The sampler is the old policy; tokens that drifted too far either way are dropped."""

    name: Literal["double_sided"] = knob("double_sided", WHAT)


class Kimi(_Named, knobs.KimiParameters):
    """The ratio to the sampler is clipped for every sign of the advantage; a squared log-ratio pulls back."""

    name: Literal["kimi"] = knob("kimi", WHAT)


class Oapl(_Named, knobs.OaplParameters):
    """Regresses the log-ratio to the sampler onto the optimal advantage."""

    name: Literal["oapl"] = knob("oapl", WHAT)


class Distillation(_Named, knobs.DistillParameters):
    """A teacher's verdict on every token in place of rewards."""

    name: Literal["distill"] = knob("distill", WHAT)


class Distill(Distillation):
    """Distillation with one teacher for all prompts."""

    teacher: str = knob(
        "", "A registered model with the same tokenizer; the policy learns from its log-probabilities", source="models"
    )

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        if not self.teacher:
            yield FieldProblem("teacher", "name the model to learn from")


Chosen = Grpo | DrGrpo | Dapo | Gspo | Icepop | Misc | DoubleSided | Kimi | Oapl | Distill
CHOICES = ("grpo", "dr_grpo", "dapo", "gspo", "icepop", "misc", "double_sided", "kimi", "oapl", "distill")


def _named(raw: Any) -> Any:
    return {"name": DEFAULT, **raw} if isinstance(raw, dict) else raw


Objective = Annotated[Chosen, Field(discriminator="name"), BeforeValidator(_named)]


def parameters(chosen: Chosen | Distillation, max_new_tokens: int) -> dict[str, Any]:
    """The objective's own knobs. If no divisor is given, the aggregation `constant` divides by the greatest length of a response."""
    given = chosen.model_dump(exclude={"name", "teacher"})
    if "max_tokens" in given and given["max_tokens"] is None:
        given["max_tokens"] = max_new_tokens
    return given


def mismatch_weighted(chosen: Chosen | Distillation) -> bool:
    """Whether tokens are weighted by pi_old / pi_roll, the mismatch of trainer and sampler with the same weights."""
    return isinstance(chosen, knobs.Popped) or getattr(chosen, "decoupled", False)


def sampler_is_old(chosen: Chosen | Distillation) -> bool:
    """Whether the ratio is to the sampler's log-probabilities, so that no pass of the old policy is needed."""
    return isinstance(chosen, knobs.DoubleSidedParameters | knobs.KimiParameters | knobs.OaplParameters)


def problems(
    chosen: Chosen | Distillation, max_new_tokens: int, group_size: int, top_p: float
) -> Iterator[FieldProblem]:
    """Problems within the objective, or with the way in which responses are sampled. The paths begin at the config's root."""
    filled = chosen.model_copy(update={"max_tokens": max_new_tokens}) if hasattr(chosen, "max_tokens") else chosen
    for problem in filled.problems():
        yield FieldProblem(f"objective.{problem.path}", problem.message)
    estimator = getattr(chosen, "advantage", "the optimal advantage")
    if group_size == 1 and estimator != "remax" and not isinstance(chosen, Distillation):
        yield FieldProblem(
            "rollout.group_size",
            f"a group of 1 gives every response the advantage 0 with {estimator!r}; use at least 2",
        )
    if top_p < 1 and (mismatch_weighted(chosen) or sampler_is_old(chosen)):
        yield FieldProblem(
            "rollout.top_p",
            f"{chosen.name!r} compares with what the sampler recorded, which below 1 is not the whole distribution; set 1",
        )


def scaffold_problem(chosen: Chosen, ratio_mode: str, what: str = "scaffold") -> str:
    """The reason why the ratio mode of a scaffold or a hint does not fit the objective; empty if it does.

    The sampler saw the scaffold. With `scaffolded` the trainer sees it too, so that the two differ only in their arithmetic. With
    `corrected` the sampler's log-probabilities stand for pi_old, as they always do in objectives with a ratio to the sampler.
    """
    if mismatch_weighted(chosen) and ratio_mode != "scaffolded":
        why = f"the {what} would count as mismatch" if ratio_mode == "unscaffolded" else "no mismatch would be left"
        return f"{chosen.name!r} weighs by how trainer and sampler differ: {why}; choose 'scaffolded' or no {what}"
    if sampler_is_old(chosen) and ratio_mode == "unscaffolded":
        return (
            f"{chosen.name!r} divides by what the sampler recorded with the {what} before it; "
            f"choose 'corrected', which says so, 'scaffolded' or no {what}"
        )
    return ""
