"""The result of a recipe as a page of Markdown and as JSON."""

from collections.abc import Sequence
from typing import Any

from trainer.benchmarks.estimate import Estimate

from .recipes import Recipe, Size
from .verdict import ClaimResult, Measures, mean_over_seeds

_COLUMNS = (
    ("score", "score"),
    ("pass@1", "pass@1"),
    ("pass@4", "pass@4"),
    ("pass@16", "pass@16"),
    ("best of 16", "best@16"),
    ("entropy", "entropy"),
    ("drawdown", "drawdown"),
    ("novelty", "novelty"),
    ("novel > 10", "novel>10"),
    ("1 - Self-BLEU", "self_bleu_diversity"),
    ("embeddings", "embedding_diversity"),
)
_RULE = """Decision rule, set before the runs: one number per seed (differences are paired by seed) and the 95% t-interval of its
mean. *Holds*: the interval is above 0. *Does not hold here*: it is below the smallest amount that would matter. *Not decided*:
anything else. A claim holds when all its parts do, and does not hold here when one of them does not."""
_LEGEND = """Means over seeds with 95% t-intervals, of 16 responses to each held-out prompt without scaffold. score: mean rubric score;
pass@k: a score of at least {correct:g} passes; best of 16: expected best score; entropy: nats per token of the policy's own responses;
drawdown: the most that the held-out score lay below its best so far; novelty: median ratio of the responses' likelihood to that
under the untrained model, per token, and of {responses} responses the number above 10; diversity of a prompt's responses: 1 - Self-BLEU
and mean cosine distance of embeddings."""


def markdown(
    recipe: Recipe, size: Size, results: Sequence[ClaimResult], measures: Measures, about: dict[str, Any]
) -> str:
    """`about`: command, machine, seconds, seeds, prompts (held out), problems."""
    setting = recipe.sizes[size]
    lines = [
        f"# {recipe.title}",
        "",
        f"Size `{size}`. {setting.note} Paper: {recipe.paper}.",
        "",
        *_verdicts(results),
        _RULE,
        "",
        "## Arms",
        "",
        *_arms(recipe, measures),
        "",
        _LEGEND.format(correct=setting.correct, responses=16 * about["prompts"]),
        "",
        *_how(setting.config, about),
    ]
    return "\n".join(lines) + "\n"


def as_json(results: Sequence[ClaimResult], measures: Measures, about: dict[str, Any]) -> dict[str, Any]:
    claims = [
        {
            "claim": result.claim.text,
            "verdict": result.verdict,
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
        lines += [f"**{result.claim.text}: {result.verdict}.**", ""]
        lines += ["| part | difference [95% interval] | seeds | matters from | verdict |", "|---|---|---|---|---|"]
        for part in result.parts:
            shown = _shown(part.difference, sign=True)
            lines.append(
                f"| {part.part.text} | {shown} | {_seeds(part.difference)} | {part.part.margin:g} | {part.verdict} |"
            )
        lines.append("")
    return lines


def _arms(recipe: Recipe, measures: Measures) -> list[str]:
    lines = ["| arm | seeds | " + " | ".join(title for title, _ in _COLUMNS) + " |", "|---" * (len(_COLUMNS) + 2) + "|"]
    for arm in recipe.arms:
        runs = measures.get(arm.name, {})
        cells = [_shown(mean_over_seeds([found.get(key) for found in runs.values()])) for _, key in _COLUMNS]
        lines.append(f"| {arm.title} | {len(runs)} | " + " | ".join(cells) + " |")
    return lines


def _how(config: Any, about: dict[str, Any]) -> list[str]:
    rollout, optim = config["rollout"], config["optim"]
    lines = [
        "## How it was made",
        "",
        "```",
        about["command"],
        "```",
        "",
        f"{config['steps']} steps of {rollout['prompts_per_step']} prompts x {rollout['group_size']} responses of at most "
        f"{rollout['max_new_tokens']} tokens, AdamW at {optim['lr']:g}; seeds {', '.join(map(str, about['seeds']))}; "
        f"{about['prompts']} held-out prompts.",
        "",
        f"Machine: {about['machine']}. The last call of the command took {about['seconds'] / 60:.1f} min.",
    ]
    if about["problems"]:
        lines += ["", "Runs without a result:", "", *(f"- {problem}" for problem in about["problems"])]
    return lines


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
