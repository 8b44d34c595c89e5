"""Phases of recipes that do not learn from rewards: without the fields that only a reward or a sampler could follow."""

from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from ..fields import knob
from .phases import Phase

_WORDS = {
    "train/loss": "the training loss",
    "eval/loss": "the held-out loss",
    "eval/accuracy": "the held-out accuracy",
    "policy/kl_teacher": "the gap to the teachers",
    "eval/gap": "the held-out gap",
}
_REWARDED = frozenset(
    ("pass_rate", "correct", "lowest", "highest", "tried", "within", "lengths", "every", "quantile", "solved")
    + ("verification", "judged", "judgements", "tied")
)
"""Fields of a phase that need a reward."""


def _as_drawn(schema: dict[str, Any]) -> None:
    """Puts the metric behind what makes it to be read."""
    fields = schema.get("properties", {})
    if "metric" in fields:
        metric = {"metric": fields.pop("metric")}
        schema["properties"] = {
            key: each
            for name in fields
            for key, each in ({name: fields[name]} | (metric if name == "begins" else {})).items()
        }


def metric_knob(default: str) -> Any:
    return knob(
        default,
        "What must have levelled off. `train/` has a value for each step, `eval/` one for each evaluation, the one before the first step "
        "among them",
        when=("begins", ("plateau",)),
    )


class UnrewardedPhase(Phase):
    """A phase lasts until the next one begins. The fields that it names change; all others stay as in the phase before."""

    model_config = ConfigDict(json_schema_extra=_as_drawn)

    pass_rate: ClassVar[float] = 0.5  # type: ignore[misc]
    correct: ClassVar[float] = 1.0  # type: ignore[misc]
    lowest: ClassVar[float] = 0.6  # type: ignore[misc]
    highest: ClassVar[float] = 1.4  # type: ignore[misc]
    tried: ClassVar[int] = 5  # type: ignore[misc]
    within: ClassVar[float] = 0.01  # type: ignore[misc]
    lengths: ClassVar[Literal["same", "toggle", "free"]] = "same"  # type: ignore[misc]
    every: ClassVar[int] = 20  # type: ignore[misc]
    quantile: ClassVar[float] = 0.8  # type: ignore[misc]
    solved: ClassVar[float] = 0.5  # type: ignore[misc]
    uncertain_share: ClassVar[float] = 0.0  # type: ignore[misc]
    verification: ClassVar[Literal["same", "on", "off"]] = "same"  # type: ignore[misc]
    judged: ClassVar[int] = 4  # type: ignore[misc]
    judgements: ClassVar[int] = 4  # type: ignore[misc]
    tied: ClassVar[float] = 0.5  # type: ignore[misc]

    begins: Literal["step", "plateau"] = knob(
        "step",
        "What it waits for, once the phase before it has begun. `step`: a step that you name. `plateau`: `metric` has levelled off, so "
        "that the slope over its last values cannot be told from 0",
    )
    order: Literal["same", "data", "easy_first", "mixed"] = knob(
        "same",
        "Which of these comes next: in the `same` order as before; in that of the `data`; `easy_first`, from the easiest to the hardest "
        "by pass rate (`meta.pass_rate`); or `mixed`, both with a share",
    )
    window: int = knob(
        20,
        "How many values of the metric are looked at, all since the phase before has begun. Few of them look level although they fall",
        ge=4,
        le=10_000,
        when=("begins", ("plateau",)),
    )
    metric: str = ""

    @property
    def watched(self) -> str:
        return self.metric

    @property
    def watched_words(self) -> str:
        return _WORDS[self.metric]

    @property
    def by_evaluation(self) -> bool:
        return self.metric.startswith("eval/")

    @classmethod
    def refused(cls, field: str, value: Any) -> str:
        if field == "begins" and value == "pass_rate":
            return "no reward says here which responses are correct, so there is no pass rate to wait for; choose 'step' or 'plateau'"
        if (field, value) == ("order", "uncertain") or field == "uncertain_share":
            return (
                "a run without rewards learns nothing of pass rates, so the same would stay uncertain and come in every step; choose "
                "'easy_first' or 'data'"
            )
        if field in _REWARDED:
            return "no response has a reward in this recipe, which this field of a phase is about; take it away"
        return ""


class FittingPhase(UnrewardedPhase):
    """A phase lasts until the next one begins. The fields that it names change; all others stay as in the phase before."""

    temperature: ClassVar[Literal["same", "set", "search"]] = "same"  # type: ignore[misc]
    set_to: ClassVar[float] = 1.0  # type: ignore[misc]

    metric: Literal["train/loss", "eval/loss"] = metric_knob("train/loss")

    @classmethod
    def refused(cls, field: str, value: Any) -> str:
        if field in ("temperature", "set_to"):
            return "this recipe trains on stored texts and samples none, so it has no temperature; take it away"
        return super().refused(field, value)


class PairPhase(FittingPhase):
    """A phase lasts until the next one begins. The fields that it names change; all others stay as in the phase before."""

    metric: Literal["train/loss", "eval/loss", "eval/accuracy"] = metric_knob("train/loss")  # type: ignore[assignment]


class DistillPhase(UnrewardedPhase):
    """A phase lasts until the next one begins. The fields that it names change; all others stay as in the phase before."""

    temperature: Literal["same", "set"] = knob(
        "same", "Sampling temperature: the `same` as before, or `set` to a number"
    )
    metric: Literal["policy/kl_teacher", "eval/gap"] = metric_knob("policy/kl_teacher")

    @classmethod
    def refused(cls, field: str, value: Any) -> str:
        if field == "temperature" and value == "search":
            return "no reward says here what a temperature costs; choose 'set' and a number"
        return super().refused(field, value)
