"""The metrics of a policy run: every key that `trainer.loops.recipes.policy` and `trainer.runners` emit."""

from ..recipe import Metric
from .closing import CLOSING
from .common import COMMON, GENERATED
from .phases import PHASES
from .ratios import RATIOS

_SCORE = (
    "Sum of the points of met criteria over the positive points. 1 is perfect; negative criteria can push it below 0."
)
_TOKENS = "nats/token"

RUBRIC_SCORE = (
    Metric(
        "eval/rubric_score",
        "Held-out rubric score",
        "Mean score on prompts the policy never trains on, without the scaffold; the band is its 95% interval over "
        f"prompts. {_SCORE} Healthy: rises, then reaches a plateau. This is the number that counts.",
        "outcome",
        better="higher",
        band="eval/rubric_score_se",
        band_times=1.96,
    ),
    Metric(
        "eval/rubric_score_se",
        "Standard error of the held-out score",
        "Over prompts: responses to one prompt are not independent.",
        "outcome",
        optional=True,
    ),
    Metric(
        "eval/rubric_score_clipped",
        "Held-out score, clipped",
        "The same, with each response's score clipped to between 0 and 1, as papers report it.",
        "outcome",
        better="higher",
        optional=True,
    ),
)
HELD_OUT_REWARD = (
    Metric(
        "eval/reward",
        "Held-out reward",
        "Mean reward on held-out prompts, without the scaffold. Training raises the reward; what you want is a higher held-out score. If the reward "
        "rises while the score falls, the policy games its reward.",
        "outcome",
        better="higher",
        optional=True,
    ),
)
OUTCOME = (
    Metric(
        "eval/domain/*",
        "Held-out score by domain",
        f"Held-out score for each domain of the data, if there are 2 to 20 domains. {_SCORE}",
        "outcome",
        chart="Held-out score by domain",
        better="higher",
        optional=True,
    ),
    Metric(
        "reward/mean",
        "Reward",
        "Mean reward of the step's responses, where an attempt in several turns counts once; the band is the mean spread "
        "within a group. Healthy: the mean rises while the band stays open: a closed band leaves nothing to learn from.",
        "outcome",
        better="higher",
        band="reward/std",
    ),
    Metric("reward/std", "Spread of the reward", "Mean standard deviation within a group.", "outcome"),
    Metric(
        "reward/*_excluded",
        "Lacking a part of the reward",
        "For each part of the reward, how many of the step's responses lack it: its judge did not answer, or the example has nothing to measure it by.",
        "rollout",
        chart="Lacking a part",
        unit="responses",
        optional=True,
    ),
    Metric(
        "reward/*",
        "Part of the reward",
        "Each part of the reward before weighting, shadow parts too, over the responses that have it. A part that falls "
        "while the sum rises is being traded away.",
        "outcome",
        chart="Parts of the reward",
        optional=True,
    ),
)

POLICY = (
    Metric(
        "policy/entropy",
        "Entropy",
        "How undecided the policy is per token. Healthy: falls slowly. A drop to nearly 0 means that all responses of a "
        "group become alike.",
        "policy",
        unit=_TOKENS,
    ),
    Metric(
        "policy/kl",
        "to untrained",
        "How far the policy has moved from where it began. Healthy: grows slowly and steadily; a jump often comes before degenerate text. If all weights "
        "are trained, it is measured only with a KL in the objective (kl_beta above 0), because it needs a second copy of the model.",
        "policy",
        chart="KL to untrained model",
        unit=_TOKENS,
        optional=True,
    ),
    Metric(
        "policy/kl_old",
        "to sampling policy",
        "",
        "policy",
        chart="KL to untrained model",
        unit=_TOKENS,
    ),
    Metric(
        "policy/clip_share",
        "Clipped share",
        "Share of tokens whose ratio was clipped. Healthy: a few per cent. Much more: the updates are too large.",
        "policy",
        share=True,
    ),
    Metric(
        "policy/well_learned",
        "Well-learned responses",
        "Share of the step's responses that count for less because their prompt is mostly solved and the policy is sure of them (well_learned). It grows "
        "as prompts are learned; a large share means that it is time for harder data.",
        "policy",
        share=True,
        optional=True,
    ),
    Metric(
        "policy/loss",
        "Loss",
        "The value that the optimiser minimises. Its level says little for policy gradients: look for spikes, not for a trend.",
        "optim",
    ),
    Metric(
        "policy/grad_norm",
        "Gradient norm",
        "Before clipping. Healthy: of one order of magnitude throughout. Spikes mark single batches worth a look in the "
        "rollouts.",
        "optim",
    ),
    Metric(
        "policy/skipped_updates",
        "Skipped updates",
        "Updates of the step in which no response had an advantage, because the rewards of each group were equal: weights and "
        "optimiser stay as they are. Healthy: 0. Often more: prompts too easy or too hard, or rewards too coarse.",
        "optim",
        unit="updates",
        better="lower",
    ),
)

_LENGTH = (
    "Healthy: settles well below the limit. Growth up to the limit usually means rambling that no criterion punishes."
)
_EXCLUDED = (
    "Responses that could not be scored and were left out; the rollout viewer says why for each. Missing is never 0."
)
_SIZES = "Largest and smallest group of the step (rollout.budget): prompts that teach most get most responses."
_REACH = (
    "The training prompts met so far: those solved every time lately, sometimes, or never. Prompts that are sometimes solved teach most. Many are "
    "solved: use harder data. Many are out of reach: use easier data, hints or a scaffold."
)
ROLLOUT = (
    Metric("rollout/length", "training", _LENGTH, "rollout", chart="Response length", unit="tokens"),
    Metric("eval/length", "held-out", "", "rollout", chart="Response length", unit="tokens"),
    Metric(
        "rollout/truncated_share",
        "Truncated share",
        "Share of responses cut at the limit. Healthy: low and falling.",
        "rollout",
        better="lower",
        share=True,
    ),
    Metric(
        "rollout/flat_groups",
        "Flat groups",
        "Groups in which all responses got the same reward, or none trains because all were cut (rollout.truncated): they teach nothing. Healthy: few. Many: the task is too easy "
        "or too hard.",
        "rollout",
        unit="groups",
        better="lower",
    ),
    Metric(
        "rollout/domain/*",
        "Domains trained on",
        "Share of the step's responses by the domain of their prompt, if the data has 2 to 20 domains. Healthy: about the domain's share of the data. If "
        "a domain has less, a schedule or a filter leaves it out, such as a schedule that trains on the responses that finish first.",
        "rollout",
        chart="Domains trained on",
        share=True,
        optional=True,
    ),
    Metric(
        "rollout/replaced_groups",
        "Replaced groups",
        "Flat groups that gave way to groups of other prompts (rollout.replace_flat). They cost sampling and train nothing.",
        "rollout",
        unit="groups",
        better="lower",
        optional=True,
    ),
    Metric(
        "rollout/passed_over",
        "Prompts passed over",
        "Prompts that have become trivial, so that the next prompt took their place in the step (pass_rates.pass_over). Many: it is time for harder data.",
        "rollout",
        unit="prompts",
        optional=True,
    ),
    Metric(
        "rollout/responses",
        "Responses",
        "Responses sampled for the step, including those of groups that were replaced.",
        "rollout",
        unit="responses",
    ),
    Metric(
        "rollout/tokens",
        "Tokens sampled",
        "Tokens of the responses that the step learns from, together. Their sum over the steps is the axis Tokens of the charts.",
        "rollout",
        unit="tokens",
        optional=True,
    ),
    Metric(
        "rollout/unfinished",
        "Responses that wait",
        "Responses that are sampled and wait for the rest of their group, which later steps sample (runner.spread).",
        "rollout",
        unit="responses",
        optional=True,
    ),
    Metric(
        "rollout/age",
        "mean",
        "Steps between the weights that sampled a response and the weights that train on it, if groups are sampled over several steps: mean and largest. "
        "At most runner.spread less 1, plus what runner.push_every adds.",
        "rollout",
        chart="Age of the responses",
        unit="steps",
        optional=True,
    ),
    Metric("rollout/age_max", "largest", "", "rollout", chart="Age of the responses", unit="steps", optional=True),
    Metric(
        "rollout/largest_group",
        "largest",
        _SIZES,
        "rollout",
        chart="Responses to a prompt",
        unit="responses",
        optional=True,
    ),
    Metric(
        "rollout/smallest_group",
        "smallest",
        "",
        "rollout",
        chart="Responses to a prompt",
        unit="responses",
        optional=True,
    ),
    *(
        Metric(f"rollout/{key}", title, help, "data", chart="Prompts by pass rate", share=True, optional=True)
        for key, title, help in (
            ("solved", "solved", _REACH),
            ("learnable", "learnable", ""),
            ("out_of_reach", "out of reach", ""),
        )
    ),
    Metric("rollout/excluded", "training", _EXCLUDED, "rollout", chart="Excluded responses", unit="responses"),
    Metric("eval/excluded", "held-out", "", "rollout", chart="Excluded responses", unit="responses"),
)

CRITERIA = (
    Metric(
        "scaffold/ratio",
        "Scaffold shown",
        "Mean share of the rubric's criteria shown in the prompt while sampling. It falls to 0 by design: the policy must learn to answer without the "
        "scaffold.",
        "rollout",
        share=True,
        optional=True,
    ),
    Metric(
        "hint/share",
        "Hint shown",
        "Mean share of the reference reasoning shown in the prompt while sampling (AHRL). It falls with the steps, and faster for prompts that are "
        "solved more often; prompts that are never solved keep their hint.",
        "rollout",
        share=True,
        optional=True,
    ),
    Metric(
        "criterion/*",
        "Criteria met",
        "Pass rate over the step's responses. For criteria with negative points, lower is better.",
        "criteria",
        share=True,
        optional=True,
    ),
)

_DROPPED = "Responses that were too old or lost their worker too often, and groups that lost half of their responses. The log says why for each."
_AGE = (
    "Steps between the oldest weights that sampled a response and the weights that train on it: mean and largest. With `urb`, runner.ahead fixes it; a "
    "response above runner.max_staleness is excluded."
)
WORKERS = (
    Metric("async/staleness", "mean", _AGE, "async", chart="Age of the weights", unit="steps", optional=True),
    Metric("async/staleness_max", "largest", "", "async", chart="Age of the weights", unit="steps", optional=True),
    Metric(
        "async/utilisation",
        "Workers busy",
        "Share of their time in which workers sample. If it is low and the learner hardly waits, fewer workers are enough.",
        "async",
        share=True,
        optional=True,
    ),
    Metric(
        "perf/wait_s",
        "Learner waits",
        "How long the learner waited for the responses of the step. If this is much of the step's time, use more workers or a larger runner.ahead.",
        "async",
        unit="s",
        better="lower",
        optional=True,
    ),
    Metric(
        "perf/queue",
        "Groups that wait",
        "Groups that are sampled and scored, and wait for a later step. Always many: the learner is the slower part, and its responses get old. Always "
        "0, and the learner waits: use more workers.",
        "async",
        unit="groups",
        optional=True,
    ),
    Metric("async/dropped", "responses", _DROPPED, "async", chart="Left out", optional=True),
    Metric("async/dropped_groups", "groups", "", "async", chart="Left out", optional=True),
)

ROUNDS = (
    Metric(
        "offline/round",
        "Round",
        "Which round of stored responses the steps train on. At the first step of a round, the policy answers all its prompts.",
        "rollout",
        optional=True,
    ),
    Metric(
        "offline/reward",
        "Reward of a round",
        "Mean reward of all responses of a round, including those of left-out prompts: how good the policy was when the round began. Healthy: higher "
        "from round to round.",
        "rollout",
        better="higher",
        optional=True,
    ),
    Metric(
        "offline/prompts",
        "trained on",
        "Prompts of a round whose responses are trained on, and prompts left out because no response had a reward above runner.solved_above.",
        "rollout",
        chart="Prompts of a round",
        unit="prompts",
        optional=True,
    ),
    Metric("offline/left_out", "left out", "", "rollout", chart="Prompts of a round", unit="prompts", optional=True),
    Metric(
        "rollout/replayed",
        "Replayed responses",
        "Responses of the step that an earlier step had sampled and trained on (runner.replay).",
        "rollout",
        unit="responses",
        optional=True,
    ),
)

_THROUGHPUT = (
    "Tokens sampled and tokens trained on per second. Healthy: flat. A slow fall often means growing responses."
)
_PACKING = (
    "Waste: the part of the token budget of a training pass (optim.micro_batch_tokens) that no token filled. Shared: tokens that were computed already "
    "for another response to the same prompt. Much waste means that the budget is only a little larger than one response."
)
SPEED = (
    Metric("perf/rollout_tokens_per_s", "sampling", _THROUGHPUT, "speed", chart="Throughput", unit="tokens/s"),
    Metric("perf/train_tokens_per_s", "training", "", "speed", chart="Throughput", unit="tokens/s"),
    GENERATED,
    Metric(
        "perf/reward_wait_s",
        "waiting",
        "The part of a step in which all responses are there and the step only waits for rewards. If it is long, give the judge's endpoint more calls at "
        "a time, or run asynchronously.",
        "speed",
        chart="Waiting for rewards",
        unit="s",
        better="lower",
        optional=True,
    ),
    Metric("perf/pack_waste", "waste", _PACKING, "speed", chart="Packing", share=True),
    Metric("perf/shared_share", "shared", "", "speed", chart="Packing", share=True),
)

JUDGE = (
    Metric(
        "judge/cost",
        "Cost of judging",
        "Of the step's calls to judges, in the unit of the endpoint's prices. Stored verdicts cost nothing.",
        "judge",
        better="lower",
        optional=True,
    ),
    Metric(
        "judge/calls",
        "Calls to judges",
        "Of the step. A response that was judged before is not judged again.",
        "judge",
        unit="calls",
        optional=True,
    ),
    Metric(
        "judge/latency",
        "Time per call",
        "Mean over the step's calls, from asking to the answer.",
        "judge",
        unit="s",
        better="lower",
        optional=True,
    ),
)

ON_POLICY = (*OUTCOME, *POLICY, *RATIOS, *ROLLOUT, *PHASES, *ROUNDS, *JUDGE, *WORKERS, *SPEED, *COMMON)
"""The metrics of every recipe that samples a policy and rewards its responses."""
METRICS = (*RUBRIC_SCORE, *HELD_OUT_REWARD, *CLOSING, *ON_POLICY, *CRITERIA)
HISTOGRAMS = (
    Metric(
        "policy/ratio_raw",
        "Raw",
        "All sampled tokens. The outer bars also hold what lies beyond them.",
        "ratios",
        chart="Ratio, all tokens of a step",
    ),
    Metric(
        "policy/ratio_masked",
        "Masked",
        "Only the tokens that the loss uses. Compare with Raw: the difference was masked.",
        "ratios",
        chart="Ratio, all tokens of a step",
    ),
)
