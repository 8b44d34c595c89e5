"""Recipe `reward_model`: a model that gives one number for each answer, higher for answers that people prefer."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ..errors import FieldProblem
from ..fields import knob
from ..memory_inventory import Holdings
from ..metrics.phases import STORED_PHASES
from ..metrics.preferences import OUTCOME, PAIRS, TRAINING
from ..metrics.supervised import FITTING
from ..preferences import NEEDS, PreferenceData
from ..presets import Preset, quick, small
from ..recipe import Amount, Metric, Output, Recipe, RecipeConfig, Slot, whole_number, with_ends
from ..sections import phases
from ..sections.common import Evaluation
from ..sections.phase_kinds import PairPhase


class RewardEvaluation(Evaluation):
    every: int = knob(
        20, "Steps between evaluations on the held-out split; 0: only before and after", unit="steps", ge=0
    )
    max_examples: int = knob(
        500, "The most held-out examples of an evaluation, from the first in the dataset's order", ge=0
    )
    embeddings: bool = knob(
        False,
        "Also measure what a linear model of sentence embeddings reaches; each answer is embedded once",
        advanced=True,
    )


class RewardModelConfig(RecipeConfig):
    """Raise the score of the preferred answer above that of the other."""

    phase_kind: ClassVar[type[phases.Phase] | None] = PairPhase
    data: PreferenceData = PreferenceData()
    batch_size: int = knob(16, "Pairs per step", unit="pairs", ge=1, le=65536)
    margin: float = knob(
        0.0,
        "By how much the score of the preferred answer should lead, for each point of the preference's strength (1 to 3)",
        ge=0,
        le=100,
    )
    centre: float = knob(
        0.01,
        "Weight of the squared sum of a pair's scores, which pulls the mean score to 0; preferences alone do not fix the mean",
        ge=0,
        le=100,
        advanced=True,
    )
    phases: list[PairPhase] = phases.phases_knob()
    evaluation: RewardEvaluation = RewardEvaluation()

    def problems(self) -> Iterator[FieldProblem]:
        yield from super().problems()
        yield from phases.problems(self.phases, self.steps, self.evaluation)

    def data_problems(self, counts: Mapping[str, Mapping[str, int]]) -> Iterator[FieldProblem]:
        yield from phases.data_problems(self.phases, counts)

    def holdings(self) -> Holdings:
        return Holdings(2 * self.data.max_tokens, scores=True)  # both answers of a pair are in one pass

    @classmethod
    def amounts(cls, raw: Mapping[str, Any]) -> list[Amount]:
        steps, batch = whole_number(raw, "steps"), whole_number(raw, "batch_size")
        total = steps * batch if steps and batch else None
        return [
            Amount("Pairs in all", total, f"{steps or '–'} steps × {batch or '–'} pairs"),
            Amount("Answers scored", 2 * total if total else None, "two of each pair"),
        ]


_ENDS = "Of the 95% bootstrap interval over pairs."
CALIBRATION = (
    *with_ends(
        Metric(
            "eval/ece",
            "Calibration error",
            "Expected calibration error: the distance between the certainty that the scores express and the share of pairs that they order right, "
            "averaged over bins of certainty. 0 means calibrated. The band is its 95% bootstrap interval over prompts.",
            "outcome",
            better="lower",
            count="eval/pairs",
            optional=True,
        ),
        _ENDS,
    ),
    *with_ends(
        Metric(
            "eval/brier",
            "Brier score",
            "Mean squared error of the probability that the scores give to the choice of people. The band is its 95% bootstrap "
            "interval over prompts.",
            "outcome",
            better="lower",
            count="eval/pairs",
            optional=True,
        ),
        _ENDS,
    ),
    Metric(
        "eval/reward_mean",
        "Mean score",
        "Mean over all held-out answers. Centring pulls it towards 0.",
        "outcome",
        band="eval/reward_std",
        optional=True,
    ),
    Metric(
        "eval/reward_std", "Spread of the scores", "Standard deviation over held-out answers.", "outcome", optional=True
    ),
    Metric(
        "baseline/majority",
        "Always the first, or always the second",
        "Accuracy on the same pairs if one always chooses the place that is preferred more often in training.",
        "outcome",
        chart="Accuracy without the model",
        share=True,
        optional=True,
    ),
    Metric(
        "baseline/length",
        "By length alone",
        "Accuracy if one always chooses the longer answer, or the shorter one if that is right more often in training.",
        "outcome",
        chart="Accuracy without the model",
        share=True,
        optional=True,
    ),
    Metric(
        "baseline/embedding",
        "By sentence embeddings",
        "Accuracy of a linear model of the embeddings of prompt and answer, fitted to the training pairs.",
        "outcome",
        chart="Accuracy without the model",
        share=True,
        optional=True,
    ),
    Metric(
        "baseline/human",
        "One person against the others",
        "How often one rater agrees with the majority of the others on these pairs: the ceiling for a model that is compared with single people.",
        "outcome",
        chart="Accuracy without the model",
        share=True,
        optional=True,
    ),
)

RECIPE = Recipe(
    name="reward_model",
    title="Reward model",
    summary="Train a model to score answers as people would: one number for each answer, learned from pairs that people compared.",
    schema=RewardModelConfig,
    needs=NEEDS,
    slots=(Slot("base", "model.name", heads=("lm", "scalar")),),
    brief=("labels by {data.labels}", "margin {margin}"),
    measured_by=("evaluation.max_examples", "data.max_tokens", "data.labels", "data.ties"),
    headline="eval/accuracy",
    stats=("eval/accuracy", "train/loss"),
    metrics=(*OUTCOME, *CALIBRATION, *TRAINING, *PAIRS, *STORED_PHASES, *FITTING),
    histograms=(
        Metric(
            "eval/confidence",
            "How sure it is",
            "Held-out pairs by the probability that the scores give to the answer that the model prefers.",
            "outcome",
            chart="How sure, and how often right",
        ),
        Metric(
            "eval/confidence_right",
            "How sure it is where it is right",
            "The part of these pairs in which people prefer the same answer. As a share of each bin, calibrated scores lie on the diagonal: they are "
            "right as often as they say.",
            "outcome",
            chart="How sure, and how often right",
            over="eval/confidence",
        ),
    ),
    samples="pair",
    outputs=(Output("reward_model", "Reward model"),),
    icon="scale",
    paper="Bradley and Terry, 1952; Ouyang et al., 2022; centring: Eisenstein et al., 2023",
    presets=(
        quick(batch_size=4),
        Preset(
            "bradley_terry",
            "Plain Bradley-Terry",
            "The preferred answer should score higher, by any margin, and all weights are trained.",
            {"margin": 0.0, "model": {"lora": None}},
        ),
        small(batch_size=4),
    ),
    example={
        "steps": 3,
        "batch_size": 2,
        "evaluation": {"every": 0, "max_examples": 2},
    },
)
