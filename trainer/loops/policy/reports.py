"""Makes the report of a step: metrics, histograms, rollout records."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from trainer.config.on_policy import Truncated
from trainer.config.rewards.parts import RewardPart
from trainer.contracts import Histogram, PartResult, RolloutRecord, RolloutTurn, TokenStretch
from trainer.curriculum import PassCounts
from trainer.rollouts import RolloutTask, Trajectory, flat_groups, group_rewards, one_of_each, taught_rewards

from .token_texts import TokenTexts
from .update import Learned, UpdateReport

DOMAINS, SHOWN = 20, 60
"""The largest number of domains in a chart, and of characters of a domain's name in the key of its metric."""
_Others = TypeVar("_Others", float, None)
_ROUNDING = 1e-9
_RATIO_EDGES = tuple(round(0.5 + 0.05 * i, 2) for i in range(21))


def rollout_metrics(trajectories: Sequence[Trajectory], truncated: Truncated = "train") -> dict[str, float]:
    """Metrics known before the update; undefined values are left out. Lengths are those of trajectories, rewards those of
    episodes: an episode of several trajectories has one reward. `truncated` decides about flat groups alone.
    """
    groups, episodes = group_rewards(trajectories), one_of_each(trajectories)
    rewards = [t.reward.total for t in episodes if t.reward.total is not None]
    values = {
        "rollout/responses": float(len(episodes)),
        "rollout/tokens": float(sum(t.length for t in trajectories)),
        "rollout/length": _mean([t.length for t in trajectories]),
        "rollout/truncated_share": _mean([t.stop == "length" for t in trajectories]),
        "rollout/excluded": float(len(episodes) - len(rewards)),
        "rollout/flat_groups": float(flat_groups(taught_rewards(trajectories, truncated))),
        "reward/mean": _mean(rewards),
        "reward/std": _mean([statistics.pstdev(group) for group in groups.values()]),
    }
    return values


def domain_shares(
    trajectories: Sequence[Trajectory], domain_of: Callable[[str], str], known: Collection[str]
) -> dict[str, float]:
    """`rollout/domain/<name>`: the share of the step's responses whose prompts are of each domain; 0 for a domain without any. Given
    only if 2 to 20 domains are known.
    """
    if not 1 < len(known) <= DOMAINS or not trajectories:
        return {}
    found = Counter(domain_of(t.plan.example_key) for t in one_of_each(trajectories))
    return {f"rollout/domain/{name[:SHOWN] or 'none'}": found[name] / found.total() for name in sorted(known)}


def reward_metrics(trajectories: Sequence[Trajectory], asking: Collection[str]) -> dict[str, float]:
    """Metrics of the responses' rewards; see `part_metrics`."""
    return part_metrics([part for t in one_of_each(trajectories) for part in t.reward.parts], asking)


def asking_parts(parts: Iterable[RewardPart]) -> frozenset[str]:
    """The names of the parts of a reward that ask a judge. A rubric whose criteria are all checked by verifiers asks none."""
    return frozenset(part.name for part in parts if part.asks_judge)


def part_metrics(parts: Sequence[PartResult], asking: Collection[str]) -> dict[str, float]:
    """Each part's mean over the responses that have it, and how many lack it; what judges cost and how long they took.

    `asking`: the names of the parts that ask a judge. Without one, nothing is said about judges: 0 calls would look like a measurement.
    """
    values: dict[str, float] = {}
    for name in dict.fromkeys(part.name for part in parts):
        mine = [part.value for part in parts if part.name == name]
        known = [value for value in mine if value is not None]
        values[f"reward/{name}"] = _mean(known)
        values[f"reward/{name}_excluded"] = float(len(mine) - len(known))
    judged = [part for part in parts if part.name in asking]
    calls = sum(part.calls for part in judged)
    if judged:
        values["judge/calls"] = float(calls)
    if calls:
        values["judge/latency"] = sum(part.latency_s for part in judged) / calls
        costs = [part.cost for part in judged if part.cost is not None]
        values["judge/cost"] = sum(costs) if costs else math.nan
    return values


def verifier_rates(trajectories: Sequence[Trajectory], tasks: Mapping[str, RolloutTask]) -> dict[str, float]:
    """`criterion/<verifier>`: the share of criteria checked by that verifier that were met, if there are verdicts."""
    met: dict[str, list[bool]] = defaultdict(list)
    for trajectory in one_of_each(trajectories):
        if not trajectory.reward.criteria:  # its reward worker was lost, or its rubric could not be scored in time
            continue
        rubric = tasks[trajectory.plan.example_key].rubric
        for criterion, result in zip(rubric.criteria if rubric else (), trajectory.reward.criteria, strict=True):
            if criterion.verifier and result.verdict.met is not None:
                met[criterion.verifier.name].append(result.verdict.met)
    return {f"criterion/{name}": _mean(values) for name, values in met.items()}


def outcomes(trajectories: Sequence[Trajectory], threshold: float) -> dict[str, list[bool]]:
    """Prompt key -> whether each episode solved it: by the rubric's score if there is one, else by the reward.
    Episodes without a reward are missing.
    """
    found: dict[str, list[bool]] = defaultdict(list)
    for trajectory in one_of_each(trajectories):
        solves = solved(trajectory, threshold)
        if solves is not None:
            found[trajectory.plan.example_key].append(solves)
    return dict(found)


def solved(trajectory: Trajectory, threshold: float) -> bool | None:
    """Whether the trajectory solved its prompt; None without a reward."""
    reward = trajectory.reward
    worth = reward.total if reward.clipped is None else reward.clipped
    return None if reward.total is None or worth is None else worth >= threshold - _ROUNDING


def learned(trajectories: Sequence[Trajectory], rates: PassCounts, threshold: float) -> list[Learned]:
    """For each trajectory the solved share of its group, and the pass rate of its prompt before the step."""
    groups: dict[int, list[bool]] = defaultdict(list)
    for trajectory in one_of_each(trajectories):
        solves = solved(trajectory, threshold)
        if solves is not None:
            groups[trajectory.plan.group].append(solves)
    return [
        Learned(_share(groups[t.plan.group]), rates.rate(t.plan.example_key))
        if t.plan.role == "policy"
        else Learned(0.0, None)  # other responses of the policy have no pass rate
        for t in trajectories
    ]


def _share(outcomes: Sequence[bool]) -> float:
    return sum(outcomes) / len(outcomes) if outcomes else 0.0


def size_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Sizes of groups that a budget has set; {} if all groups were dropped."""
    sizes = Counter(t.plan.group for t in one_of_each(trajectories)).values()
    if not sizes:
        return {}
    return {"rollout/largest_group": float(max(sizes)), "rollout/smallest_group": float(min(sizes))}


def reach_metrics(rates: PassCounts) -> dict[str, float]:
    """Shares of the prompts seen so far; {} before the first outcome."""
    reach = rates.reach()
    if reach is None:
        return {}
    return {
        "rollout/solved": reach.solved,
        "rollout/learnable": reach.learnable,
        "rollout/out_of_reach": reach.unsolved,
    }


def update_metrics(report: UpdateReport) -> tuple[dict[str, float], dict[str, Histogram]]:
    """Means over generated tokens of the responses that were trained on; loss and norm are means over the updates."""
    ratio, weight = _flat(report.ratio), _flat(report.weight)
    kept = ratio[weight > 0]
    values = {
        "policy/loss": _mean(report.losses),
        "policy/grad_norm": _mean(report.grad_norms),
        "policy/skipped_updates": float(report.skipped) if report.losses else math.nan,
        "policy/entropy": _tensor_mean(_flat(report.entropy)),
        "policy/kl_old": _tensor_mean(_flat(report.kl_old)),
        "policy/kl": _tensor_mean(_flat(report.kl)),
        "policy/ratio_raw": _tensor_mean(ratio),
        "policy/ratio_masked": _tensor_mean(kept),
        "policy/clip_share": _tensor_mean((weight == 0).float()),
    }
    if report.scaled is not None and report.ratio:
        values["policy/well_learned"] = len(report.scaled) / len(report.ratio)
    values |= {f"policy/{name}": _joined(name, parts) for name, parts in report.extra.items()}
    histograms = {"policy/ratio_raw": histogram(ratio), "policy/ratio_masked": histogram(kept)}
    return values, {key: value for key, value in histograms.items() if sum(value.counts)}


def packing_metrics(report: UpdateReport, budget: int) -> dict[str, float]:
    """The use of passes; {} without passes.

    `perf/pack_waste`: the part of the token budget that the passes left empty; passes of one size would need that much
    padding. `perf/shared_share`: the part of all tokens that was computed for another response already.
    """
    if not report.passes:
        return {}
    # A response longer than the budget has its own pass, which wastes nothing.
    waste = max(0.0, 1.0 - report.nodes / (report.passes * budget))
    return {"perf/pack_waste": waste, "perf/shared_share": 1.0 - report.nodes / report.tokens}


def histogram(values: Tensor, edges: tuple[float, ...] = _RATIO_EDGES) -> Histogram:
    """Counts between the edges; the outer bins take the values beyond."""
    places = torch.bucketize(values, torch.tensor(edges[1:-1]), right=True)
    counts = torch.bincount(places, minlength=len(edges) - 1)
    return Histogram(edges=edges, counts=tuple(counts.tolist()))


def rollout_records(
    trajectories: Sequence[Trajectory],
    texts: TokenTexts,
    phase: Literal["train", "eval"],
    advantages_B: Tensor | None = None,
    report: UpdateReport | None = None,
    shown: Callable[[int], bool] = lambda group: True,
) -> list[RolloutRecord]:
    """One record per response, also if a batch repeats it. In training, groups that are `shown` have columns with a value for each token;
    responses that were trained on also have ratios, mask and entropies, and advantages of tokens if the objective makes them.
    """
    records = []
    seen: set[int] = set()
    for b, trajectory in enumerate(trajectories):
        if id(trajectory) in seen:
            continue
        seen.add(id(trajectory))
        advantage = None if advantages_B is None else float(advantages_B[b])
        if report and b in report.advantages:
            advantage = report.advantages[b]
        columns: dict[str, Any] = {}
        if phase == "train" and shown(trajectory.plan.group):
            columns = _columns(trajectory, texts, b, report)
        records.append(
            RolloutRecord(
                phase=phase,
                example_key=trajectory.plan.example_key,
                group=trajectory.plan.group,
                index=trajectory.plan.index,
                prompt=trajectory.plan.prompt_text,
                scaffold=trajectory.plan.scaffold,
                scaffold_shown=trajectory.plan.scaffold_shown,
                hint=trajectory.plan.hint,
                response=trajectory.text,
                finish_reason=trajectory.stop,
                reward=trajectory.reward.total,
                components=trajectory.reward.components,
                advantage=None if advantage is None or math.isnan(advantage) else advantage,
                criteria=trajectory.reward.criteria,
                parts=trajectory.reward.parts,
                excluded=trajectory.reward.excluded,
                stretches=tuple(TokenStretch(version=v, start=start, end=end) for v, start, end in trajectory.versions),
                turns=_turns(trajectory, texts.tokenizer),
                **columns,
            )
        )
    return records


def token_by_token(group: int, share: float, first: int) -> bool:
    """Whether a group is shown token by token: `share` of all groups, evenly spread. `first` counts the groups before the step."""
    return math.floor((first + group + 1) * share) > math.floor((first + group) * share)


def _columns(trajectory: Trajectory, texts: TokenTexts, b: int, report: UpdateReport | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "tokens": texts.of(trajectory.tokens),
        "logprobs": _placed(trajectory, np.asarray(trajectory.logprobs, dtype=np.float64), None),
    }
    if report is not None and b in report.ratio:
        found["ratios"] = _placed(trajectory, report.ratio[b].double().numpy(), None)
        found["mask"] = _placed(trajectory, report.weight[b].double().numpy(), 0.0)
        found["entropies"] = _placed(trajectory, report.entropy[b].double().numpy(), None)
        if b in report.token_advantages:
            found["advantages"] = _placed(trajectory, report.token_advantages[b].double().numpy(), None)
    return found


def _turns(trajectory: Trajectory, tokenizer: Any) -> tuple[RolloutTurn, ...]:
    """Neighbouring spans of one author as one turn; () if the policy wrote everything."""
    spans = trajectory.spans[1:]
    if all(span.author == "policy" for span in spans):
        return ()
    turns = []
    for policys, mine in groupby(spans, key=lambda span: span.author == "policy"):
        tokens = [token for span in mine for token in span.tokens]
        text = tokenizer.decode(tokens, skip_special_tokens=True)
        turns.append(RolloutTurn(author="policy" if policys else "env", text=text, tokens=len(tokens)))
    return tuple(turns)


def _placed(trajectory: Trajectory, values: np.ndarray[Any, Any], others: _Others) -> tuple[float | _Others, ...]:
    """Values of the policy's tokens at their places among all tokens after the prompt, and `others` at the other places."""
    rounded, places, count = np.round(values, 4).tolist(), trajectory.places, len(trajectory.tokens)
    if len(rounded) == count:  # the policy wrote everything
        return tuple(rounded)
    found: list[float | _Others] = [others] * count
    for place, value in zip(places, rounded, strict=True):
        found[place] = value
    return tuple(found)


def _flat(parts: Mapping[int, Tensor]) -> Tensor:
    """All values in the order of the rows, so that sums do not depend on the order of the passes."""
    return torch.cat([parts[b] for b in sorted(parts)]) if parts else torch.empty(0)


def _joined(name: str, parts: Sequence[tuple[float, float]]) -> float:
    """The value over all micro-batches: for a maximum the largest, else the mean."""
    return max(value for value, _ in parts) if name.startswith("mismatch_far") else _weighted(parts)


def _weighted(parts: Sequence[tuple[float, float]]) -> float:
    """The weighted mean of (value, weight)."""
    total = sum(weight for _, weight in parts)
    return sum(value * weight for value, weight in parts) / total if total else math.nan


def _tensor_mean(values: Tensor) -> float:
    return float(values.mean()) if len(values) else math.nan


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
