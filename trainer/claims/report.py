"""The result of a plan as a Markdown page and as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.metrics.claims import RULE, ClaimResult, Measures, Plan, Setting, Size, mean_over_seeds
from trainer.metrics.claims.plan import ends_of
from trainer.metrics.estimate import Estimate

_CURVES = """Means over seeds with 95% t-intervals, from the curves of the runs. "First fifth" and "last fifth" are means over these steps,
"at the start" is the untrained model, and "at the end" is the last evaluation."""
_LEGEND = """Means over seeds with 95% t-intervals, of 16 responses to each held-out prompt without scaffold. score: mean rubric score;
pass@k: a score of at least {correct:g} passes; best of 16: expected best score; entropy: nats per token of the policy's own responses;
drawdown: how far the held-out score fell below its best so far, at most; novelty: how many times as likely a response is as under the
untrained model, per token: the median, and the number above 10 of {responses} responses; diversity of a prompt's responses: 1 - Self-BLEU
and mean cosine distance of embeddings."""


def markdown(plan: Plan, size: Size, results: Sequence[ClaimResult], measures: Measures, about: dict[str, Any]) -> str:
    """The page. `about` has command, machine, seconds, seeds, steps (of each run), prompts (held out), problems, and note if
    there is something to know about these runs."""
    setting = plan.sizes[size]
    lines = [
        f"# {plan.title}",
        "",
        f"Size `{size}`. {setting.note} Paper: {plan.paper}.",
        "",
        *_verdicts(results),
        RULE,
        "",
        "## Arms",
        "",
        *_arms(plan, (*plan.columns, *setting.columns), measures),
        "",
        _CURVES
        if plan.measured == "curves"
        else _LEGEND.format(correct=plan.passes[size], responses=16 * about["prompts"]),
        "",
        *_over_pairs(plan, setting, measures),
        *_how(setting.config, about),
    ]
    return "\n".join(lines) + "\n"


def as_json(results: Sequence[ClaimResult], measures: Measures, about: dict[str, Any]) -> dict[str, Any]:
    claims = [
        {
            "claim": result.claim.text,
            "verdict": result.corrected,
            "verdict_uncorrected": result.verdict,
            "p_holm": result.adjusted,
            "parts": [
                {"part": part.part.text, "verdict": part.verdict, "margin": part.part.margin, **part.difference.json()}
                for part in result.parts
            ],
        }
        for result in results
    ]
    return {"claims": claims, "about": about, "measures": measures}


def _verdicts(results: Sequence[ClaimResult]) -> list[str]:
    lines = []
    for result in results:
        corrected = f"p = {result.adjusted:.2g} by Holm's method for {len(results)} claims"
        if all(part.difference.n == 1 for part in result.parts):
            corrected = "one seed has no interval"
        if result.corrected != result.verdict:
            corrected += f"; without that correction it {result.verdict}"
        lines += [f"**{result.claim.text}: {result.corrected}** ({corrected}).", ""]
        lines += [
            "| part | difference [95% interval] | seeds | smallest that matters | verdict |",
            "|---|---|---|---|---|",
        ]
        for part in result.parts:
            shown = _shown(part.difference, sign=True)
            lines.append(
                f"| {part.part.text} | {shown} | {_seeds(part.difference)} | {part.part.margin:g} | {part.verdict} |"
            )
        lines.append("")
    return lines


def _arms(plan: Plan, columns: Sequence[tuple[str, str]], measures: Measures) -> list[str]:
    lines = ["| arm | seeds | " + " | ".join(title for title, _ in columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for arm in plan.arms:
        runs = measures.get(arm.name, {})
        cells = [_shown(mean_over_seeds([found.get(key) for found in runs.values()])) for _, key in columns]
        lines.append(f"| {arm.title} | {len(runs)} | " + " | ".join(cells) + " |")
    return lines


def _over_pairs(plan: Plan, setting: Setting, measures: Measures) -> list[str]:
    """Each run's held-out measures before and after training, with the interval of the run's own evaluation."""
    if not setting.over_pairs:
        return []
    lines = ["## Held-out pairs, run by run", "", "| arm | seed | | before [95% interval over pairs] | after | pairs |"]
    lines.append("|---|---|---|---|---|---|")
    for arm in plan.arms:
        for seed, found in measures.get(arm.name, {}).items():
            for title, metric, count in setting.over_pairs:
                cells = [_with_ends(found, metric, when) for when in ("first", "last")]
                pairs = found.get(f"{count}:last")
                shown = "unknown" if pairs is None else f"{pairs:.0f}"
                lines.append(f"| {arm.title} | {seed} | {title} | {' | '.join(cells)} | {shown} |")
    return [*lines, ""]


def _with_ends(found: Mapping[str, float | None], metric: str, when: str) -> str:
    value, low, high = (found.get(f"{key}:{when}") for key in (metric, *ends_of(metric)))
    if value is None:
        return "none"
    return f"{value:.3f} (no interval)" if low is None or high is None else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _how(config: Any, about: dict[str, Any]) -> list[str]:
    lines = [
        "## How it was made",
        "",
        "```",
        about["command"],
        "```",
        "",
        f"{about['steps']} steps of {_sampled(config)}, AdamW at {_rate(config)}; "
        f"seeds {', '.join(map(str, about['seeds']))}; {about['prompts']} held-out prompts.",
        "",
        f"Machine: {about['machine']}. The last call of the command took {about['seconds'] / 60:.1f} min.",
    ]
    if "note" in about:
        lines += ["", about["note"]]
    if about["problems"]:
        lines += ["", "Runs without a result:", "", *(f"- {problem}" for problem in about["problems"])]
    return lines


def _sampled(config: Any) -> str:
    """The number of samples of a step: for each role if a run has two that take turns; for recipes without sampling, its demonstrations."""
    if "batch_size" in config:
        return f"{config['batch_size']} demonstrations"
    sizes = {"": config["rollout"]} if "rollout" in config else {role: config[role] for role in ("judge", "writer")}
    return " or ".join(
        f"{each['prompts_per_step']} prompts x {each['group_size']} responses of at most {each['max_new_tokens']} tokens"
        + (f" ({role})" if role else "")
        for role, each in sizes.items()
    )


def _rate(config: Any) -> str:
    """The learning rate; for each role if the roles have their own."""
    shared = config.get("optim", {}).get("lr")
    own = {role: config.get(role, {}).get("optim", {}).get("lr", shared) for role in ("judge", "writer")}
    if set(own.values()) == {shared}:
        return f"{shared:g}"
    return " or ".join(f"{lr:g} ({role})" for role, lr in own.items())


def _shown(estimate: Estimate, sign: bool = False) -> str:
    if estimate.value is None:
        return f"none ({estimate.undefined})"
    form = "+.3f" if sign else ".3f"
    value = format(estimate.value, form)
    if estimate.low is None or estimate.high is None:
        return f"{value} ({estimate.interval})"
    return f"{value} [{estimate.low:{form}}, {estimate.high:{form}}]"


def _seeds(estimate: Estimate) -> str:
    return f"{estimate.n}, {estimate.missing} missing" if estimate.missing else str(estimate.n)
