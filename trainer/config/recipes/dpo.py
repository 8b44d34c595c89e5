"""Recipe `dpo`: a policy learns from comparisons, without a reward model and without sampling."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from ..errors import FieldProblem
from ..fields import Section, knob
from ..memory_inventory import Holdings
from ..metrics.phases import STORED_PHASES
from ..metrics.preferences import OUTCOME, PAIRS, TRAINING
from ..metrics.supervised import FITTING
from ..preferences import NEEDS, PreferenceData
from ..presets import Preset, quick, small
from ..recipe import Amount, Metric, Output, Recipe, RecipeConfig, Slot, whole_number
from ..sections import phases
from ..sections.common import Evaluation, Optim
from ..sections.phase_kinds import PairPhase


class DpoData(PreferenceData):
    labels: Literal["share", "majority"] = knob(
        "majority",
        "`majority`: the answer that most raters preferred, as if it were certain. `share`: a pair's target is the share of its votes for each answer; a "
        "tie is half a vote for each",
    )


class DpoOptim(Optim):
    lr: float = knob(5e-5, "Peak learning rate", gt=0, le=1)


class DpoEvaluation(Evaluation):
    max_examples: int = knob(
        200, "The most held-out examples of an evaluation, from the first in the dataset's order", ge=0
    )


class PairTerms(Section):
    """The objective that is minimised."""

    beta: float = knob(
        0.1, "Scale of the log-ratio to the reference: a larger value keeps the policy closer to it", gt=0, le=1000
    )
    nll_weight: float = knob(
        0.2, "Weight of the mean negative log-probability per token of the preferred answer", ge=0, le=1000
    )


class DpoLoss(PairTerms):
    """The objective that is minimised."""

    strength: Literal["none", "weight", "margin"] = knob(
        "none",
        "How the strength of a preference (1 to 3) counts. `weight`: a stronger pair has more weight, on average 1. `margin`: the reward of the "
        "preferred answer should lead by more",
    )
    margin: float = knob(
        0.1, "With `margin`: the lead for each point of strength", gt=0, le=100, when=("strength", ("margin",))
    )


class DpoConfig(RecipeConfig):
    """Raise the preferred answer over the other, compared with the probabilities of the base model."""

    phase_kind: ClassVar[type[phases.Phase] | None] = PairPhase
    data: DpoData = DpoData()
    batch_size: int = knob(16, "Pairs per step", unit="pairs", ge=1, le=65536)
    loss: DpoLoss = DpoLoss()
    phases: list[PairPhase] = phases.phases_knob()
    optim: DpoOptim = DpoOptim()
    evaluation: DpoEvaluation = DpoEvaluation()

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        yield from phases.problems(self.phases, self.steps, self.evaluation)
        if self.loss.strength == "weight" and self.data.ties == "half":
            yield FieldProblem(
                "loss.strength",
                "a tie has no strength to be weighted by; leave ties out (data.ties) or choose 'margin'",
            )

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        yield from phases.data_problems(self.phases, counts)

    def holdings(self) -> Holdings:
        return Holdings(2 * self.data.max_tokens)  # both answers of a pair are in one pass

    @classmethod
    def amounts(cls, raw: Mapping[str, Any]) -> list[Amount]:
        steps, batch = whole_number(raw, "steps"), whole_number(raw, "batch_size")
        total = steps * batch if steps and batch else None
        return [Amount("Pairs in all", total, f"{steps or '–'} steps × {batch or '–'} pairs")]


REWARDS = (
    Metric(
        "train/reward_chosen",
        "of the preferred answers",
        "beta times what training has added to an answer's log-probability, over the step's pairs. Healthy: for the preferred answers it rises or stays; "
        "if both fall, raise loss.nll_weight or lower the learning rate.",
        "train",
        chart="Rewards in training",
        better="higher",
    ),
    Metric(
        "train/reward_rejected",
        "of the others",
        "The same for the answers that were not preferred.",
        "train",
        chart="Rewards in training",
    ),
    Metric(
        "train/nll",
        "Loss of the preferred answers",
        "Mean negative log-probability per token of the step's preferred answers.",
        "train",
        unit="nats/token",
        better="lower",
    ),
    Metric(
        "eval/reward_chosen",
        "of the preferred answers",
        "The same on held-out pairs.",
        "outcome",
        chart="Held-out rewards",
        better="higher",
        optional=True,
    ),
    Metric(
        "eval/reward_rejected",
        "of the others",
        "The same on held-out pairs.",
        "outcome",
        chart="Held-out rewards",
        optional=True,
    ),
)

RECIPE = Recipe(
    name="dpo",
    title="Direct preference optimisation",
    summary="Train a policy on pairs that people compared, without a reward model: the preferred answer becomes likelier.",
    schema=DpoConfig,
    needs=NEEDS,
    slots=(Slot("base", "model.name"),),
    brief=("beta {loss.beta}", "labels by {data.labels}"),
    measured_by=("evaluation.*", "data.max_tokens", "data.labels", "data.ties"),
    headline="eval/accuracy",
    stats=("eval/accuracy", "train/loss"),
    metrics=(*OUTCOME, *TRAINING, *REWARDS, *PAIRS, *STORED_PHASES, *FITTING),
    samples="pair",
    outputs=(Output("policy", "Policy"),),
    icon="git-compare-arrows",
    paper="Rafailov et al., 2023, Direct Preference Optimization",
    presets=(
        quick(batch_size=4),
        Preset(
            "rubric_arm",
            "As in the paper: Rubric-ARM",
            "DPO with the likelihood of the preferred answer beside it. Batches of 64 pairs, a small learning rate, and all weights are trained.",
            {
                "model": {"lora": None},
                "batch_size": 64,
                "loss": {"beta": 0.1, "nll_weight": 0.2, "strength": "none"},
                "optim": {"lr": 8e-7},
            },
        ),
        small(batch_size=4),
    ),
    example={
        "steps": 3,
        "batch_size": 2,
        "evaluation": {"every": 0, "max_examples": 2},
    },
)
