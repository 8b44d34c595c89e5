// What every metric means: titles, units, help, and how charts are grouped. Keys not named here land in "Other".

const RUBRIC = "Sum of the points of met criteria over the positive points. 1 is perfect; negative criteria can push it below 0.";

export const GROUPS = [
  {
    id: "outcome",
    title: "Outcome",
    charts: [
      { id: "eval-score", title: "Held-out rubric score", keys: ["eval/rubric_score"], dots: true,
        band: { middle: "eval/rubric_score", spread: "eval/rubric_score_se", times: 1.96 },
        help: `Mean score on prompts the policy never trains on, without the scaffold; the band is its 95% interval over prompts. ${RUBRIC} Healthy: rises, then levels off. This is the number that counts.` },
      { id: "eval-clipped", title: "Held-out score, cut", match: (key) => key === "eval/rubric_score_clipped", optional: true, dots: true,
        help: "The same with each response's score cut to between 0 and 1, as papers report it." },
      { id: "reward", title: "Reward", keys: ["reward/mean"], band: { middle: "reward/mean", spread: "reward/std" },
        help: "Mean reward of the step's responses; the band is the mean spread within a group. Healthy: the mean rises while the band stays open: a closed band leaves nothing to learn from." },
      { id: "components", title: "Reward components", match: (key) => key.startsWith("reward/") && !["reward/mean", "reward/std"].includes(key),
        help: "Each part of the reward before weighting. A part that falls while the sum rises is being traded away." },
    ],
  },
  {
    id: "policy",
    title: "Policy",
    charts: [
      { id: "entropy", title: "Entropy", unit: "nats/token", keys: ["policy/entropy"],
        help: "How undecided the policy is per token. Healthy: falls slowly. A drop to nearly 0 means that all responses of a group become alike." },
      { id: "kl", title: "KL to untrained model", unit: "nats/token", keys: ["policy/kl", "policy/kl_old"],
        help: "How far the policy has moved from where it began. Healthy: grows slowly and steadily; a jump often comes before degenerate text." },
      { id: "clip", title: "Clipped share", keys: ["policy/clip_share"], percent: true,
        help: "Share of tokens whose ratio was clipped. Healthy: a few per cent. Much more: the updates are too large." },
      { id: "loss", title: "Loss", keys: ["policy/loss"],
        help: "What the optimiser minimises. Its level says little for policy gradients: look for spikes, not for a trend." },
      { id: "grad", title: "Gradient norm", keys: ["policy/grad_norm"],
        help: "Before clipping. Healthy: of one order of magnitude throughout. Spikes mark single batches worth a look in the rollouts." },
      { id: "lr", title: "Learning rate", keys: ["optim/lr"], help: "As scheduled." },
    ],
  },
  {
    id: "ratios",
    title: "Ratios",
    charts: [
      { id: "ratio", title: "Mean ratio", keys: ["policy/ratio_raw", "policy/ratio_masked"],
        help: "Probability of a token under the policy now over when it was sampled; masked: the tokens that the loss uses. Healthy: close to 1." },
      { id: "mismatch", title: "Trainer over sampler", match: (key) => key.startsWith("policy/mismatch_"), optional: true,
        help: "Mean ratio of what trainer and sampler give the same token under the same weights; masked: the tokens that the loss uses. Healthy: very close to 1." },
      { id: "popped", title: "Silenced share", match: (key) => key === "policy/pop_share", optional: true, percent: true,
        help: "Tokens left out because trainer and sampler disagree about them. Healthy: well below 1 %." },
      { id: "log-ratio", title: "Log-ratio to sampler", match: (key) => key === "policy/log_ratio", optional: true,
        help: "Mean over whole responses of how much likelier they are to the policy than to the weights that sampled them (OAPL). Grows between two pushes and falls back at the next." },
      { id: "penalty", title: "Squared log-ratio", match: (key) => key === "policy/penalty", optional: true,
        help: "What pulls the policy back to the weights that sampled, before its weight tau (Kimi K2.5). Healthy: small; growth means that responses are too old." },
      { id: "teacher", title: "KL to teacher", unit: "nats/token", match: (key) => key === "policy/kl_teacher", optional: true,
        help: "How far the policy is from its teacher on its own responses. Healthy: falls towards 0." },
    ],
    histograms: [
      { key: "policy/ratio_raw", title: "Raw", help: "All sampled tokens. The outer bars also hold what lies beyond them." },
      { key: "policy/ratio_masked", title: "Masked", help: "Only the tokens that the loss uses. Compare with Raw: what is missing was masked." },
    ],
  },
  {
    id: "rollout",
    title: "Rollout",
    charts: [
      { id: "length", title: "Response length", unit: "tokens", keys: ["rollout/length", "eval/length"],
        help: "Healthy: settles well below the limit. Growth up to the limit usually means rambling that no criterion punishes." },
      { id: "truncated", title: "Truncated share", keys: ["rollout/truncated_share"], percent: true,
        help: "Share of responses cut at the limit. Healthy: low and falling." },
      { id: "scaffold", title: "Scaffold shown", keys: ["scaffold/ratio"], percent: true,
        help: "Mean share of the rubric's criteria shown in the prompt while sampling. Falls to 0 by design: the policy must learn to do without." },
      { id: "flat", title: "Flat groups", keys: ["rollout/flat_groups"], wide: true,
        help: "Groups in which all responses got the same reward: they teach nothing. Healthy: few. Many: the task is too easy or too hard." },
      { id: "excluded", title: "Excluded responses", keys: ["rollout/excluded", "eval/excluded"], wide: true,
        help: "Responses that could not be scored and were left out; the rollout viewer says why for each." },
    ],
  },
  {
    id: "criteria",
    title: "Criteria",
    lede: "Share of responses that meet the criteria checked by each verifier.",
    small: true,
    each: (key) => key.startsWith("criterion/"),
    eachHelp: "Pass rate over the step's responses. For criteria with negative points, lower is better.",
  },
  {
    id: "async",
    title: "Workers",
    lede: "How sampling and training keep pace with each other in an asynchronous run.",
    charts: [
      { id: "staleness", title: "Age of the weights", unit: "steps", match: (key) => key.startsWith("async/staleness"), optional: true,
        help: "Steps between the oldest weights in a response and those it trains: mean and largest. With `urb` it is fixed by runner.ahead; above runner.max_staleness responses are excluded." },
      { id: "utilisation", title: "Workers busy", match: (key) => key === "async/utilisation", optional: true, percent: true,
        help: "Share of their time in which workers sample. Low while the learner hardly waits: fewer workers would do." },
      { id: "wait", title: "Learner waits", unit: "s", match: (key) => key === "perf/wait_s", optional: true,
        help: "Until the responses of the step were there. Much of the step's time: more workers, or a larger runner.ahead." },
      { id: "dropped", title: "Left out", match: (key) => key.startsWith("async/dropped"), optional: true, wide: true,
        help: "Responses that were too old or lost their worker too often, and groups that lost half of theirs. The log says why for each." },
    ],
  },
  {
    id: "performance",
    title: "Performance",
    charts: [
      { id: "tokens", title: "Throughput", unit: "tokens/s", keys: ["perf/rollout_tokens_per_s", "perf/train_tokens_per_s"], wide: true,
        help: "Tokens sampled and tokens trained on per second. Healthy: flat. A slow fall often means growing responses." },
      { id: "packing", title: "Packing", keys: ["perf/pack_waste", "perf/shared_share"], percent: true,
        help: "Waste: the part of the token budget of a training pass (optim.micro_batch_tokens) that no token filled. Shared: tokens computed for another response already, because both continue the same prompt. Much waste: the budget is only a little larger than one response." },
      { id: "step-time", title: "Time per step", unit: "s", keys: ["perf/step_s"], wide: true, help: "Sampling, scoring and updating together." },
    ],
  },
];

const NAMES = {
  "reward/mean": "mean", "policy/kl": "to untrained", "policy/kl_old": "to sampling policy",
  "policy/ratio_raw": "raw", "policy/ratio_masked": "masked",
  "policy/mismatch_raw": "raw", "policy/mismatch_masked": "masked",
  "rollout/length": "training", "eval/length": "held-out", "rollout/excluded": "training", "eval/excluded": "held-out",
  "async/staleness": "mean", "async/staleness_max": "largest", "async/dropped": "responses", "async/dropped_groups": "groups",
  "perf/rollout_tokens_per_s": "sampling", "perf/train_tokens_per_s": "training",
};

/** The name of a series inside its chart. */
export const nameOf = (key) => NAMES[key] ?? key.slice(key.indexOf("/") + 1).replaceAll("_", " ");

/** Keys that only serve as the band of another curve, or that another chart already speaks for. */
const HELPERS = new Set(["reward/std", "eval/rubric_score_se"]);

/** The charts of `group` for the metric keys that exist; charts with fixed keys are drawn before their data comes. */
export function chartsOf(group, keys) {
  const all = (group.charts ?? []).map((chart) => ({ ...chart, keys: chart.keys ?? keys.filter(chart.match) }));
  const found = all.filter((chart) => !chart.optional || chart.keys.length);
  if (group.each) {
    for (const key of keys.filter(group.each)) {
      found.push({ id: key.replaceAll("/", "-"), title: nameOf(key), keys: [key], percent: true, help: group.eachHelp });
    }
  }
  return found;
}

/** A last group for keys that no other group draws: a new metric is seen on the day it is first sent. */
export function otherGroup(keys) {
  const drawn = new Set(GROUPS.flatMap((group) => chartsOf(group, keys).flatMap((chart) => chart.keys)));
  const rest = keys.filter((key) => !drawn.has(key) && !HELPERS.has(key));
  const charts = rest.map((key) => ({ id: key.replaceAll("/", "-"), title: key, keys: [key], help: `The metric ${key}, as the trainer sends it.` }));
  return charts.length ? { id: "other", title: "Other", small: true, charts } : null;
}
