"""Whether the matcher in bfloat16 decides as right as in float32: `python -m benchmarks.matcher_precision`.

Neither precision is right in itself: what counts is known matches. Each row compares both precisions on the same decisions: the labelled
pairs that chose the matcher's border, by that border, and the other data of `benchmarks.local_judges`. The difference has a 95% interval
from a bootstrap over questions.

Rule, set before the first measurement: bfloat16 agrees as well if no row's interval lies below 0, and if the interval over all
labelled pairs together ends no lower than -0.02.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.judge_accuracy import Truth, distinct, edits, lists, reasons, rubric_levels
from benchmarks.local_judges import SHARED
from benchmarks.machine import describe
from trainer.inference.embeddings import Embedder, Precision
from trainer.inference.products import computes_bfloat16
from trainer.rewards.reason_matching import Kind
from trainer.rollouts.matchers import EmbeddingMatcher

LEAST = -0.02
_DRAWS = 10_000


@dataclass(frozen=True)
class BothPrecisions:
    """`gained` and `lost`: decisions that only bfloat16, and only float32, has right."""

    what: str
    n: int
    questions: int
    float32: float
    bfloat16: float
    gained: int
    lost: int
    low: float
    high: float

    def __str__(self) -> str:
        shares = f"{self.float32:.4f} | {self.bfloat16:.4f}"
        difference = f"{self.bfloat16 - self.float32:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"
        return (
            f"| {self.what} | {self.n:,} | {self.questions} | {shares} | {self.gained} | {self.lost} | {difference} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.matcher_precision", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--shared", type=Path, default=SHARED, help="folder of the shared data; absent: labelled pairs alone"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the sample of UKP and of intervals")
    options = parser.parse_args()
    how = "computes in bfloat16" if computes_bfloat16() else "computes bfloat16 by software"
    print(f"{describe()}; this processor {how}\n")
    print("| decisions | n | questions | right in float32 | in bfloat16 | gained | lost | difference [95%] |")
    print("|---|---|---|---|---|---|---|---|")
    found = []
    for what, narrow, wide in measured(options.shared, options.seed):
        found.append(compared(what, narrow, wide, options.seed))
        print(found[-1], flush=True)
    print(f"\n{'as good as' if as_good(found) else 'not shown to be as good as'} float32 by the rule")
    print(json.dumps({"rows": [asdict(each) for each in found], "as_good": as_good(found)}))


ALL = "labelled pairs, all"


def as_good(found: list[BothPrecisions]) -> bool:
    """Whether bfloat16 is as good, by the rule of this module."""
    return all(each.high >= 0 for each in found) and all(each.low >= LEAST for each in found if each.what == ALL)


def measured(shared: Path, seed: int) -> Iterator[tuple[str, Truth, Truth]]:
    """The name of the data, then which decisions are right in bfloat16 and in float32."""
    kinds: tuple[Kind, ...] = ("items", "reasons")
    labelled = {kind: (_labelled("bfloat16", kind), _labelled("float32", kind)) for kind in kinds}
    for kind, (narrow, wide) in labelled.items():
        yield f"labelled pairs, {kind}", narrow, wide
    items, said = labelled.values()
    yield ALL, _joined(items[0], said[0]), _joined(items[1], said[1])
    narrow_embed, wide_embed = Embedder("bfloat16"), Embedder()
    others: list[tuple[str, Callable[[Embedder], Truth]]] = [
        ("paraphrase or small edit, items", lambda embed: edits(embed, "items")),
        ("paraphrase or small edit, reasons", lambda embed: edits(embed, "reasons")),
    ]
    if shared.is_dir():
        others += [
            ("BiGGen, criterion to its description", lambda embed: rubric_levels(embed, shared)),
            ("HealthBench, different criteria", lambda embed: distinct(embed, shared)),
            ("UKP, reasons for one side", lambda embed: reasons(embed, shared, seed)),
        ]
    for what, decide in others:
        yield what, decide(narrow_embed), decide(wide_embed)


def compared(what: str, narrow: Truth, wide: Truth, seed: int) -> BothPrecisions:
    """The difference with its interval: questions are resampled, because decisions on one question are not independent evidence."""
    (in_narrow, items), (in_wide, _) = narrow, wide
    difference_N = np.array(in_narrow, dtype=np.float64) - np.array(in_wide, dtype=np.float64)
    _, of_N = np.unique(np.array(items), return_inverse=True)
    sums_Q, sizes_Q = np.bincount(of_N, difference_N), np.bincount(of_N)
    questions = len(sums_Q)
    drawn_DQ = np.random.default_rng(seed).multinomial(questions, np.full(questions, 1 / questions), size=_DRAWS)
    low, high = np.quantile((drawn_DQ @ sums_Q) / (drawn_DQ @ sizes_Q), [0.025, 0.975])
    gained, lost = int((difference_N > 0).sum()), int((difference_N < 0).sum())
    shares = float(np.mean(in_wide)), float(np.mean(in_narrow))
    return BothPrecisions(what, len(items), questions, *shares, gained, lost, float(low), float(high))


def _labelled(precision: Precision, kind: Kind) -> Truth:
    """Every pair across two lists of one task, decided as a run decides it."""
    rows, matcher = lists(kind), EmbeddingMatcher(precision)
    right: list[bool] = []
    items: list[str] = []
    scores = matcher.scores([(row["one"], row["two"]) for row in rows], kind)
    for row, scores_HM in zip(rows, scores, strict=True):
        right += ((scores_HM > 0.5) == np.eye(len(scores_HM), dtype=bool)).ravel().tolist()
        items += [row["item"]] * scores_HM.size
    return right, items


def _joined(one: Truth, two: Truth) -> Truth:
    return one[0] + two[0], one[1] + two[1]


if __name__ == "__main__":
    main()
