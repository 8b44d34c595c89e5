"""The metrics of the recipe `alternating`: for each role those of every sampled policy, and those of both roles together."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..recipe import Metric
from . import policy, ratios, writer
from .common import COMMON, share_of_pairs
from .phases import PHASES

SPLIT = ("reward/", "policy/", "rollout/")
"""The keys of a sampled policy that each role has for itself, after the name of the role. All other keys belong to the run."""
_ROLES = (("judge", "judge"), ("writer", "writer"))


def by_role(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Metrics of a sampled policy for each role. The roles share a picture, with a curve each. A step measures one role."""
    return tuple(found for metric in metrics if metric.key.startswith(SPLIT) for found in _two(metric))


def _two(metric: Metric) -> Iterator[Metric]:
    for place, (role, name) in enumerate(_ROLES):
        pattern = metric.is_pattern
        yield replace(
            metric,
            key=f"{role}/{metric.key}",
            title=metric.title if pattern else f"{name}, {metric.title}" if metric.chart else name,
            chart=f"{metric.chart}, {name}" if pattern else metric.chart or metric.title,
            help=metric.help if pattern or not place else "",
            band=f"{role}/{metric.band}" if metric.band else "",
            optional=True,
        )


_ACCURACY = (
    "Share of held-out pairs for which the judge, with the writer's rubric, chooses the answer that people preferred. Writer and judge decode greedily. "
    "Each pair is judged in both orders and counts once, with the mean of the two; the band is the 95% interval over pairs. A rubric that cannot be "
    "read, a tie and a judgement without a decision are not right. 0.5 is what a coin would reach."
)
OUTCOME = (
    *share_of_pairs(
        "eval/accuracy",
        "Held-out accuracy by written rubrics",
        _ACCURACY,
    ),
    *share_of_pairs(
        "eval/voting",
        "Held-out accuracy by voting",
        "Share of held-out pairs for which more than half of the votes are right. A vote is a sampled rubric with a sampled judgement "
        "by it. Each pair is decided in both orders and counts once. Half of the votes, or no vote at all, is not right.",
    ),
    Metric(
        "eval/votes",
        "cast",
        "A rubric that cannot be read, a question that is too long and a judgement without a decision are not votes.",
        "judge",
        chart="Votes on held-out pairs",
        optional=True,
    ),
    Metric("eval/votes_missing", "missing", "", "judge", chart="Votes on held-out pairs", optional=True),
    Metric(
        "eval/consistent",
        "Orders that agree",
        "Share of held-out pairs for which the judge chooses the same answer in both orders. A pair that the judge did not decide in one of the orders "
        "is left out here and counted.",
        "judge",
        better="higher",
        share=True,
        count="eval/ordered_pairs",
        optional=True,
    ),
    Metric(
        "eval/undecided",
        "Held-out judgements without a decision",
        "Share of the greedy judgements that decide nothing, among pairs whose rubric can be read.",
        "judge",
        better="lower",
        share=True,
        optional=True,
    ),
    Metric("eval/pairs", "judged", "Held-out pairs behind each number.", "data", chart="Held-out pairs", optional=True),
    Metric("eval/ordered_pairs", "decided in both orders", "", "data", chart="Held-out pairs", optional=True),
    Metric("eval/human_rubrics", "rubrics by people", "", "data", chart="Held-out pairs", optional=True),
    Metric("eval/reward", "Held-out reward", "The writer's reward on held-out pairs.", "outcome", optional=True),
)
_OF_RUBRICS = ("eval/rubric_",)
_HABITS = ("format_rate", "unreadable", "criteria")
RUBRICS = tuple(
    replace(metric, optional=True)
    for metric in writer.METRICS
    if metric.key.startswith(_OF_RUBRICS) or metric.key.rpartition("/")[2] in _HABITS
)
JUDGING = (
    Metric(
        "judging/accuracy",
        "Training accuracy of the judge",
        "Share of the step's judgements that choose the answer that people preferred, by the rubric of the turn.",
        "judge",
        better="higher",
        share=True,
        optional=True,
    ),
    Metric(
        "judging/format_rate",
        "Judgements in their form",
        "Share of the step's judgements that explain every criterion, justify the whole and decide once.",
        "judge",
        better="higher",
        share=True,
        optional=True,
    ),
    Metric(
        "judging/undecided",
        "Judgements without a decision",
        "Share of the step's judgements without exactly one decision. They are wrong, never left out.",
        "judge",
        better="lower",
        share=True,
        optional=True,
    ),
    Metric(
        "judging/first",
        "Order bias of the judge",
        "Share of the step's decisions that choose the answer shown first. The order is drawn at random; 0.5 means no bias.",
        "judge",
        share=True,
        optional=True,
    ),
)
TURNS = (
    Metric("turn/round", "Round", "Which round the step belongs to; each round has its own pairs.", "data"),
    Metric("turn/judge", "Judge's turn", "1 in steps that train the judge, 0 in those that train the writer.", "data"),
    Metric(
        "turn/rubrics",
        "written",
        "At the beginning of a judge's turn the writer writes one rubric for each pair of the round; those that can be read "
        "are what the judge learns by.",
        "data",
        chart="Rubrics of a judge's turn",
        unit="rubrics",
        optional=True,
    ),
    Metric("turn/readable", "readable", "", "data", chart="Rubrics of a judge's turn", unit="rubrics", optional=True),
)
_WARM_LOSS = (
    "Before the first turn: mean negative log-probability of the words that people wrote, over the demonstrations of the step. It falls while the role "
    "learns the form; once it stays level, more steps only repeat what the role knows."
)


def _warm_up(key: str, chart: str, help: str, group: str, unit: str = "") -> tuple[Metric, ...]:
    """Metrics of the warm-up, with a curve for each role."""
    one = Metric("", "", "", group, chart=chart, unit=unit, optional=True)
    return tuple(
        replace(one, key=f"warmup/{role}_{key}", title=name, help="" if place else help)
        for place, (role, name) in enumerate(_ROLES)
    )


WARM_UP = (
    *_warm_up("loss", "Loss of the warm-up", _WARM_LOSS, "train"),
    *_warm_up("grad_norm", "Gradient norm of the warm-up", "Before clipping.", "optim"),
    *_warm_up("epoch", "Passes over the demonstrations", "How often each has been seen so far.", "data", "epochs"),
    *_warm_up(
        "demonstrations", "Demonstrations of the warm-up", "The texts of people from which a role learns.", "data"
    ),
    *_warm_up(
        "left_out",
        "Without a demonstration",
        "Pairs (for the judge) or prompts (for the writer) that lack a part which the form asks people to write. The log says why.",
        "data",
    ),
    *(metric for metric in PHASES if metric.key == "phase/number"),
)
_VARIANCES = "Variance of the gradient"
_CAUSES = "The writer's variance by its causes"
_LENGTHS = "Lengths of score vectors"
_ASKED = "Requirements for a noisier writer (19)"
VARIANCES = (
    Metric(
        "variance/writer",
        "step of the writer (18)",
        "Before each round, rubrics and judgements of some of its pairs are sampled. The gradient of the log-probability of each is its score vector. "
        "The chart shows the variance of a single sample's gradient for each role, as a mean over pairs. The paper lets the judge learn first because "
        "the writer's variance is larger.",
        "policy",
        chart=_VARIANCES,
        optional=True,
        count="variance/pairs",
    ),
    Metric(
        "variance/judge",
        "step of the judge (17)",
        "",
        "policy",
        chart=_VARIANCES,
        optional=True,
        count="variance/pairs",
    ),
    Metric(
        "variance/log_ratio",
        "The writer's variance over the judge's",
        "As a power of ten: above 0, the writer's step is noisier.",
        "policy",
        optional=True,
        count="variance/pairs",
    ),
    Metric(
        "variance/noise",
        "noise",
        "Noise is the part that remains because the judge is not sure with one rubric. Inconsistency is the part that comes from rubrics for one pair that pull in different directions.",
        "policy",
        chart=_CAUSES,
        optional=True,
        count="variance/pairs",
    ),
    Metric(
        "variance/inconsistency", "inconsistency", "", "policy", chart=_CAUSES, optional=True, count="variance/pairs"
    ),
    Metric(
        "variance/writer_norm",
        "rubrics",
        "Root of the mean squared length.",
        "policy",
        chart=_LENGTHS,
        optional=True,
        count="variance/pairs",
    ),
    Metric("variance/judge_norm", "judgements", "", "policy", chart=_LENGTHS, optional=True, count="variance/pairs"),
    Metric(
        "variance/norm_ratio",
        "rubric over judgement",
        "Length of a rubric's score vector divided by that of a judgement; the bound above which the writer's step is noisier; and the first less the second.",
        "policy",
        chart=_ASKED,
        optional=True,
        count="variance/pairs",
    ),
    Metric("variance/norm_bound", "bound", "", "policy", chart=_ASKED, optional=True, count="variance/pairs"),
    Metric(
        "variance/norm_margin",
        "ratio less bound",
        "",
        "policy",
        chart=_ASKED,
        optional=True,
        count="variance/pairs",
    ),
    Metric(
        "variance/p",
        "How often the judge is right by a rubric",
        "Mean of p(r) over the rubrics of the measurement. A judgement without a decision is not right.",
        "policy",
        better="higher",
        share=True,
        optional=True,
        count="variance/pairs",
    ),
    Metric(
        "variance/c1",
        "C1",
        "How much the rubrics of a pair disagree: the variance of p(r) times the score vector, divided by the mean of its square. At most 1; 0 if all "
        "pull in the same direction. Missing if the judge was never right.",
        "policy",
        optional=True,
        count="variance/pairs",
    ),
    Metric(
        "variance/pairs",
        "measured",
        "A pair is measured if at least two of its rubrics can be read and used.",
        "data",
        chart="Pairs behind the variances",
        optional=True,
    ),
    Metric(
        "variance/left_out",
        "left out",
        "",
        "data",
        chart="Pairs behind the variances",
        optional=True,
    ),
)
_PANEL = (
    "After each turn of the role: the mean worth of its responses on the turn's examples, by people's choice, beside the mean worth of one sampled "
    "response to each pair of the held-out panel. If training rises far above the panel, the run raises an alarm."
)

_BEHIND = "Examples behind a value. An example does not count if nothing of it could be read and decided."


def _panel(role: str) -> tuple[Metric, ...]:
    chart, count = f"Training and held-out panel of the {role}", f"panel/{role}_pairs"
    numbers = Metric("", "", "", "judge", better="higher", chart=chart, share=True, optional=True)
    return (
        replace(numbers, key=f"panel/{role}_trained", title="training", help=_PANEL),
        replace(numbers, key=f"panel/{role}_held_out", title="held-out panel", count=count),
        Metric(count, role, _BEHIND, "data", chart="Examples of the held-out panel", optional=True),
    )


PANEL = (*_panel("judge"), *_panel("writer"))
_HELD_OUT = tuple(metric for metric in policy.ROLLOUT if metric.key.startswith("eval/"))
METRICS = (
    *OUTCOME,
    *by_role(policy.OUTCOME),
    *RUBRICS,
    *JUDGING,
    *WARM_UP,
    *TURNS,
    *PANEL,
    *VARIANCES,
    *by_role((*policy.POLICY, *ratios.RATIOS)),
    *by_role(metric for metric in policy.ROLLOUT if "replaced" not in metric.key),
    *(replace(metric, optional=True) for metric in (*_HELD_OUT, *policy.SPEED)),
    *COMMON,
)
