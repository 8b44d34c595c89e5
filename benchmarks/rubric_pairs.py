"""Bounds for the numbers of the claim `rubric_pairs`: `python -m benchmarks.rubric_pairs`, on its held-out pairs and without training.

The claim's frozen judge gets the rubrics that came with the pairs, in place of a writer's: if the right rubric does not help the judge, no
writer can help it. And each instruction gets the rubrics of the others: the agreement of a rubric with rubrics about something else is the
level from which agreement between rubrics begins.
"""

import argparse
import asyncio
import statistics
from pathlib import Path
from typing import Any, cast

from benchmarks.machine import describe
from trainer.claims.rubric_pairs import GIVEN, demonstration, examples
from trainer.config import resolve
from trainer.config.rewards.writer import RubricPreferencePart
from trainer.contracts import Example
from trainer.inference.models import prepare_smollm2
from trainer.judges.spec import resolve as judge_spec
from trainer.metrics.claims import PLANS
from trainer.metrics.estimate import proportion
from trainer.metrics.rubricbench import alignment, alignments
from trainer.rewards.access import Access, local_judge
from trainer.rewards.kinds.writing import matched, preference
from trainer.rewards.parts import Item, Part
from trainer.rollouts.matchers import EmbeddingMatcher
from trainer.rollouts.setup import RewardSetup
from trainer.tasks import TASKS, Posed

PLAN = PLANS["rubric_pairs"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rubric_pairs", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--data", type=Path, default=GIVEN, help="as `python -m trainer claims rubric_pairs` takes it")
    options = parser.parse_args()
    prepare_smollm2(options.model)
    pairs = [each for each in examples(options.data) if each.split == "heldout" and each.rubric]
    print(f"{describe()}; {len(pairs)} held-out pairs")
    judged(asyncio.run(asked(pairs, options.model)))
    others(pairs)


async def asked(pairs: list[Example], model: Path) -> list[Part]:
    """The claim's reward of each pair's own rubric."""
    setting = PLAN.sizes["demo"]
    config: Any = resolve("rubric_writer", PLAN.config(PLAN.arms[0], setting.config, 0))
    judge = local_judge(judge_spec(dict(setting.judges["reward.judge"])), str(model))
    services = RewardSetup(config, Access({config.reward.judge: judge})).services()
    items = []
    for each in pairs:
        for posed in TASKS["rubric_writer"](config).pose(each, held_out=True):
            if isinstance(posed, Posed):
                text = demonstration(each).reference or ""
                items.append(Item(each.key, posed.example, None, text, 1, 2, facts=posed.facts))
    try:
        return await preference(cast(RubricPreferencePart, config.composition.parts[0]), items, services)
    finally:
        for name in services.judges:
            await services.judges[name].close()


def judged(parts: list[Part]) -> None:
    scores = [part.shown["scores"] for part in parts]
    right, level = sum(a > b for a, b in scores), sum(a == b for a, b in scores)
    share = proportion(right, len(scores))
    met = [value for part in parts for grades in part.shown["grades"] for value in grades.values()]
    print(f"the judge with the rubrics of the pairs: {right} of {len(scores)} as the label, {share.value:.3f} ", end="")
    print(
        f"[{share.low:.3f}, {share.high:.3f}]; both answers level in {level}, {len(scores) - right - level} the other way"
    )
    print(f"of its {len(met)} verdicts {sum(met):.0f} are `met`", flush=True)


def others(pairs: list[Example]) -> None:
    """The mean agreement of each pair's rubric with each of the others, measured as the claim measures that of a written one."""
    texts = [[criterion.text for criterion in each.rubric.criteria] for each in pairs if each.rubric]
    places = [(one, other) for one in range(len(texts)) for other in range(len(texts)) if one != other]
    scores = EmbeddingMatcher().scores([(texts[one], texts[other]) for one, other in places], "items")
    found = [
        alignment(matched(scores_HM), len(texts[other]), len(texts[one]))
        for (one, other), scores_HM in zip(places, scores, strict=True)
    ]
    means = {name: share.value for name, share in alignments(found).items()}
    told = ", ".join(f"{name} {means[name]:.3f}" for name in ("recall", "hallucination", "f1"))
    items = statistics.fmean(map(len, texts))
    print(f"rubrics of other held-out pairs ({len(found)} comparisons, {items:.2f} items each): {told}")


if __name__ == "__main__":
    main()
