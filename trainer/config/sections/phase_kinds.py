"""The kinds of phases that recipes list: of those that sample for a reward, and of those that learn without one."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from ..errors import FieldProblem
from ..fields import knob
from .phases import Phase

REWARD = "reward/mean"
"""The key of the metric whose plateau phases wait for where responses are rewarded."""
_WORDS = {
    "train/loss": "the training loss",
    "eval/loss": "the held-out loss",
    "eval/accuracy": "the held-out accuracy",
    "policy/kl_teacher": "the gap to the teachers",
    "eval/gap": "the held-out gap",
    REWARD: "the mean reward",
    "eval/score": "the held-out score",
}


class RewardedPhase(Phase):
    """A phase lasts until the next one begins. The fields that it names change; all others stay as in the phase before."""

    begins: Literal["step", "plateau", "pass_rate"] = knob(  # type: ignore[assignment]
        "step",
        "When the phase begins, at the earliest after the phase before it. `step`: at a step that you name. `plateau`: when the "
        "mean reward has reached a plateau, so that the slope over the last steps cannot be distinguished from 0. `pass_rate`: when enough "
        "responses of the last steps are correct",
    )
    window: int = knob(
        20,
        "Last steps that count for this. Only steps of the phase before count. If the reward is noisy, few steps can "
        "look level although they rise",
        unit="steps",
        ge=4,
        le=10_000,
        when=("begins", ("plateau", "pass_rate")),
    )
    pass_rate: float = knob(
        0.5,
        "The phase begins when the mean share of correct responses over these steps is at least this",
        unit="of the responses",
        gt=0,
        le=1,
        when=("begins", ("pass_rate",)),
    )
    correct: float = knob(
        1.0,
        "The least reward of a correct response, for a pass rate and for the budgets of a toggle",
        advanced=True,
    )
    temperature: Literal["same", "set", "search"] = knob(
        "same",
        "Sampling temperature: the `same` as before; `set` to a number; or by `search`: several are tried on the held-out prompts, "
        "and the highest that costs no score is chosen (dynamic temperature)",
    )
    set_to: float = knob(1.0, "The temperature", gt=0, le=5, when=("temperature", ("set",)))
    lowest: float = knob(0.6, "Lowest temperature that is tried", gt=0, le=5, when=("temperature", ("search",)))
    highest: float = knob(1.4, "Highest temperature that is tried", gt=0, le=5, when=("temperature", ("search",)))
    tried: int = knob(
        5,
        "Temperatures that are tried, evenly spaced. Each takes an evaluation of the held-out prompts",
        unit="temperatures",
        ge=2,
        le=50,
        when=("temperature", ("search",)),
    )
    within: float = knob(
        0.01,
        "The share of the best held-out score that the chosen temperature may lose",
        unit="of the score",
        ge=0,
        lt=1,
        when=("temperature", ("search",)),
        advanced=True,
    )

    lengths: Literal["same", "toggle", "free"] = knob(
        "same",
        "Length of responses: the `same` as before; `toggle` between steps with a budget for each prompt and steps without one; "
        "`free` from now on",
    )
    every: int = knob(
        20,
        "Length of a stretch with a budget, and of the free stretch after it; the phase begins with a budget",
        unit="steps",
        ge=1,
        le=1_000_000,
        when=("lengths", ("toggle",)),
    )
    quantile: float = knob(
        0.8,
        "A prompt's budget is this quantile of the lengths of its correct responses. It is set once, from the first group of the "
        "phase with a correct response",
        ge=0,
        le=1,
        when=("lengths", ("toggle",)),
    )
    solved: float = knob(
        0.5,
        "The budget of a prompt is enforced if the mean reward of its group is at least this; prompts that the policy hardly "
        "solves stay free",
        when=("lengths", ("toggle",)),
    )

    order: Literal["same", "data", "easy_first", "uncertain", "mixed"] = knob(  # type: ignore[assignment]
        "same",
        "Order in which these prompts come: the `same` as before; that of the `data`; `easy_first`, from the easiest to the "
        "hardest by pass rate (`meta.pass_rate`); `uncertain`, those whose pass rate is least certain; or `mixed`, each order with "
        "a share",
    )
    uncertain_share: float = knob(
        0.0,
        "Share of prompts whose pass rate in this run is least certain: near one half, or seldom met",
        ge=0,
        le=1000,
        when=("order", ("mixed",)),
    )

    verification: Literal["same", "on", "off"] = knob(
        "same",
        "Whether the policy also judges its own responses and learns from that (self-verification): the `same` as before, `on`, or "
        "`off` from now on",
    )
    judged: int = knob(
        4,
        "Responses of each step that are judged; those to the hardest prompts come first",
        unit="responses",
        ge=1,
        le=4096,
        when=("verification", ("on",)),
    )
    judgements: int = knob(
        4, "Judgements of each of these responses", unit="judgements", ge=2, le=256, when=("verification", ("on",))
    )
    tied: float = knob(
        0.5,
        "How far the reward of a judgement is tied to the quality of the judged response. 0: not at all; 1: a right judgement of a "
        "worthless response earns nothing",
        ge=0,
        le=1,
        when=("verification", ("on",)),
    )

    @property
    def watched(self) -> str:
        return REWARD

    @property
    def watched_words(self) -> str:
        return "the mean reward"

    @property
    def _shares(self) -> dict[str, float]:
        return super()._shares | {"uncertain": self.uncertain_share}

    @property
    def sampled_at(self) -> float | None:
        return self.set_to if self.temperature == "set" else None

    @property
    def grid(self) -> list[float]:
        """The temperatures that the phase tries, in ascending order."""
        gap = (self.highest - self.lowest) / (self.tried - 1)
        return [round(self.lowest + place * gap, 6) for place in range(self.tried)]

    @property
    def when(self) -> str:
        if self.begins != "pass_rate":
            return super().when
        return f"once {self.pass_rate:.3g} of the responses of {self.window} steps are correct"

    @property
    def awaited(self) -> str:
        if self.begins != "pass_rate":
            return super().awaited
        return f"{self.pass_rate:.3g} of the responses of {self.window} steps to be correct"

    def _sampling_changes(self) -> Iterator[str]:
        if self.temperature == "set":
            yield f"temperature {self.set_to:g}"
        elif self.temperature == "search":
            yield f"the best temperature of {self.lowest:g} to {self.highest:g}"
        if self.lengths == "toggle":
            yield f"length budget on and off every {self.every} steps"
        elif self.lengths == "free":
            yield "lengths free"

    def _judging_changes(self) -> Iterator[str]:
        if self.verification == "on":
            yield f"judges {self.judged} of its own responses a step"
        elif self.verification == "off":
            yield "stops judging its responses"

    def problems(self, held_out: int) -> Iterator[FieldProblem]:
        yield from super().problems(held_out)
        if self.temperature == "search":
            if self.highest <= self.lowest:
                yield FieldProblem("highest", f"must be above the lowest, which is {self.lowest:g}")
            if not held_out:
                yield FieldProblem(
                    "temperature", "a search needs held-out prompts; set evaluation.max_examples above 0"
                )

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        yield from super().data_problems(counts)
        if self.temperature == "search" and not counts.get("heldout", {}).get("examples"):
            yield FieldProblem("temperature", "a search needs held-out prompts, and the dataset version has none")


def rewarded(phases: Iterable[Phase]) -> Iterator[RewardedPhase]:
    """The phases whose responses have a reward."""
    return (phase for phase in phases if isinstance(phase, RewardedPhase))


_TEMPERATURE = ("temperature", "set_to")
_REWARDED = RewardedPhase.model_fields.keys() - Phase.model_fields.keys() - {*_TEMPERATURE, "uncertain_share"}
"""Fields of a phase that need a reward."""


def metric_knob(default: str) -> Any:
    return knob(
        default,
        "The metric that must have reached a plateau. `train/` has a value for each step. `eval/` has one for each evaluation, "
        "including the one before the first step",
        when=("begins", ("plateau",)),
    )


class UnrewardedPhase(Phase):
    """A phase lasts until the next one begins. The fields that it names change; all others stay as in the phase before."""

    metric: str = ""

    @property
    def watched(self) -> str:
        return self.metric

    @property
    def watched_words(self) -> str:
        return _WORDS[self.metric]

    @classmethod
    def refused(cls, field: str, value: Any) -> str:
        if field == "begins" and value == "pass_rate":
            return (
                "this recipe has no reward that says which responses are correct, so there is no pass rate to wait for; choose 'step' "
                "or 'plateau'"
            )
        if (field, value) == ("order", "uncertain") or field == "uncertain_share":
            return (
                "a run without rewards measures no pass rates, so the same prompts would stay uncertain and come in every step; choose "
                "'easy_first' or 'data'"
            )
        if field in _REWARDED:
            return "this field of a phase needs rewards, and responses have none in this recipe; remove it"
        return ""


class FittingPhase(UnrewardedPhase):
    """A phase lasts until the next one begins. The fields that it names change; all others stay as in the phase before."""

    metric: Literal["train/loss", "eval/loss"] = metric_knob("train/loss")

    @classmethod
    def refused(cls, field: str, value: Any) -> str:
        if field in _TEMPERATURE:
            return "this recipe trains on stored texts and samples none, so it has no temperature; remove it"
        return super().refused(field, value)


class PairPhase(FittingPhase):
    """A phase lasts until the next one begins. The fields that it names change; all others stay as in the phase before."""

    metric: Literal["train/loss", "eval/loss", "eval/accuracy"] = metric_knob("train/loss")  # type: ignore[assignment]


class SampledPhase(UnrewardedPhase):
    """A phase lasts until the next one begins. The fields that it names change; all others stay as in the phase before."""

    temperature: Literal["same", "set"] = knob(
        "same", "Sampling temperature: the `same` as before, or `set` to a number"
    )
    set_to: float = knob(1.0, "The temperature", gt=0, le=5, when=("temperature", ("set",)))

    @property
    def sampled_at(self) -> float | None:
        return self.set_to if self.temperature == "set" else None

    def _sampling_changes(self) -> Iterator[str]:
        if self.temperature == "set":
            yield f"temperature {self.set_to:g}"

    @classmethod
    def refused(cls, field: str, value: Any) -> str:
        if field == "temperature" and value == "search":
            return "a search needs rewards to compare temperatures, and this recipe has none; choose 'set' and a number"
        return super().refused(field, value)


class DistillPhase(SampledPhase):
    """A phase lasts until the next one begins. The fields that it names change; all others stay as in the phase before."""

    metric: Literal["policy/kl_teacher", "eval/gap"] = metric_knob("policy/kl_teacher")


class RoundPhase(SampledPhase):
    """A phase begins with a round and lasts until the next one begins. The fields that it names change; all others stay as in the phase
    before."""

    step: int = knob(
        1, "The first step of the phase, which is the first of a round", ge=1, le=10_000_000, when=("begins", ("step",))
    )
    metric: Literal["reward/mean", "eval/score"] = knob(
        "eval/score",
        "The metric that must have reached a plateau: `reward/mean`, which has a value for each round, or the held-out score, which has "
        "one for each evaluation, including the one before the first step",
        when=("begins", ("plateau",)),
    )

    @property
    def _unit(self) -> str:
        return "evaluations" if self.by_evaluation else "rounds"

    def earliest(self, after: int, every: int, round_steps: int = 1) -> int | None:
        if self.begins == "plateau" and not self.by_evaluation:  # a round is measured with its first step, in its phase
            return first_of_round(max(after, 1), round_steps) + self.window * round_steps
        found = super().earliest(after, every)
        return None if found is None else first_of_round(found, round_steps)

    @classmethod
    def refused(cls, field: str, value: Any) -> str:
        if (field, value) == ("order", "uncertain") or field == "uncertain_share":
            return UNCERTAIN_ROUNDS
        if field in _REWARDED or (field, value) == ("begins", "pass_rate"):
            return "this recipe learns which of two answers is better, not how much one is worth or whether it is correct; remove this"
        return super().refused(field, value)


UNCERTAIN_ROUNDS = "rounds keep no pass rates, so the same prompts would stay uncertain and come in every round; choose 'easy_first' or 'data'"


def first_of_round(step: int, round_steps: int) -> int:
    """The first step of a round that is not before `step`."""
    return -(-(step - 1) // round_steps) * round_steps + 1
