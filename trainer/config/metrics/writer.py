"""Metrics that only the recipe `rubric_writer` has; `trainer.tasks.writing_metrics` computes them."""

from typing import Literal

from ..recipe import Metric, with_ends
from .common import share_of_pairs

_RANKS = (
    "Share of written rubrics under which the answer that people preferred scores above the other; with `reward.by` 'choice', share of rubrics with "
    "which the judge chooses it. A tie and a rubric that cannot be read are not right. If the judge gave no answer that can be read, the rubric is left "
    "out and counted as excluded."
)


def _agreement(
    key: str, title: str, help: str, better: Literal["higher", "lower"], count: str = ""
) -> tuple[Metric, ...]:
    """A share of criteria, in the picture that compares written rubrics with those of people."""
    chart = "Held-out agreement with people's rubrics"
    found = Metric(key, title, help, "outcome", chart=chart, better=better, count=count, share=True, optional=True)
    return with_ends(found, "95%.")


OUTCOME = (
    *share_of_pairs(
        "eval/preference_accuracy",
        "Held-out preference accuracy",
        f"{_RANKS} The band is its 95% interval over pairs. 0.5 is what a coin would reach.",
    ),
    *with_ends(
        Metric(
            "eval/cohens_d",
            "Held-out Cohen's d",
            "How far a written rubric separates the two answers: the mean of S(preferred) - S(other), divided by its standard deviation, over pairs with "
            "both scores. Undefined below two pairs, or if all differences are the same.",
            "outcome",
            better="higher",
            count="eval/scored_pairs",
            optional=True,
        ),
        "95%.",
    ),
    *_agreement(
        "eval/rubric_f1",
        "structural F1",
        "Held-out rubrics beside those that people wrote. Recall: share of people's criteria that the written rubric has too. Hallucination: share "
        "of written criteria that people did not write. F1: the harmonic mean of recall and 1 - hallucination, 0 for a rubric that cannot be read. "
        "Items match by `reward.matcher`, many to many.",
        better="higher",
        count="eval/human_rubrics",
    ),
    *_agreement("eval/rubric_recall", "recall", "", better="higher", count="eval/human_rubrics"),
    *_agreement("eval/rubric_hallucination", "hallucination", "", better="lower"),
    Metric(
        "eval/reward", "Held-out reward", "Values that training pushes, on held-out pairs.", "outcome", optional=True
    ),
    Metric(
        "eval/pairs", "pairs", "The data behind the held-out numbers.", "data", chart="Held-out cases", optional=True
    ),
    Metric("eval/scored_pairs", "pairs with both scores", "", "data", chart="Held-out cases", optional=True),
    Metric("eval/human_rubrics", "rubrics by people", "", "data", chart="Held-out cases", optional=True),
)


def _both(
    key: str,
    title: str,
    help: str,
    better: Literal["", "higher", "lower"] = "",
    share: bool = False,
    unit: str = "",
    optional: bool = False,
) -> tuple[Metric, ...]:
    """One picture with a curve of the training step and a curve of held-out pairs."""
    return (
        Metric(f"writing/{key}", "training", help, "judge", title, unit, better, share=share, optional=optional),
        Metric(f"eval/{key}", "held-out", "", "judge", title, unit, better, share=share, optional=True),
    )


STEP = (
    Metric(
        "writing/preference_accuracy",
        "Training preference accuracy",
        f"{_RANKS} Of the step's rubrics.",
        "judge",
        better="higher",
        share=True,
        optional=True,
    ),
    *_both(
        "format_rate",
        "Rubrics in their form",
        "Share of responses that have exactly the requested form. Healthy: close to 100% within the first steps; a "
        "small model that never reaches it needs supervised fine-tuning on rubrics first.",
        "higher",
        share=True,
    ),
    *_both(
        "unreadable",
        "Rubrics that cannot be read",
        "Share of responses without a single criterion that earns points. They have the lowest reward; no judge is asked about them.",
        "lower",
        share=True,
    ),
    *_both(
        "criteria",
        "Criteria per rubric",
        "Mean over the rubrics that can be read. If it keeps rising, the writer lists everything it can think of.",
        unit="criteria",
        optional=True,
    ),
    *_both(
        "quality",
        "Quality of rubrics",
        "The grade of the judge of rubrics, 0 to 4; a rubric that cannot be read has 0. While this rises and the preference "
        "accuracy falls, the writer pleases that judge alone.",
        "higher",
        optional=True,
    ),
    *_both(
        "margin",
        "Lead of the preferred answer",
        "Mean of S(preferred) - S(other) over the rubrics that scored both.",
        "higher",
        optional=True,
    ),
)
METRICS = (*OUTCOME, *STEP)
