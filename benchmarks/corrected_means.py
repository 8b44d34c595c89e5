"""Corrected means beside ppi-python's: `python -m benchmarks.corrected_means [--keep]`.

ppi-python, by the authors of prediction-powered inference, is installed into its own environment. It gets the same scores and
the weight that `corrected_mean` chose, because its own choice divides by other counts and is kept within 0 and 1. `--keep` writes its
answers to the file that a test compares with, so the test needs no package index.
"""

import argparse
import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import scipy

from benchmarks.machine import AWAY
from benchmarks.peers import PeerAway, installed
from trainer.metrics.corrected import Corrected, corrected_mean

VERSION = "0.2.3"
KEPT = Path(__file__).parents[1] / "tests/benchmarks/corrected_by_ppi.json"
STUDIES = (("share", 30, 200), ("share", 120, 80), ("score", 60, 500), ("score", 25, 40), ("unrelated", 40, 300))
PEER = """
import json, sys

import numpy as np
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

answers = []
for people, judge, alone, weight in json.load(sys.stdin):
    given = [np.array(each) for each in (people, judge, alone)]
    low, high = ppi_mean_ci(*given, alpha=0.05, lam=weight)
    answers.append([float(np.squeeze(each)) for each in (ppi_mean_pointestimate(*given, lam=weight), low, high)])
json.dump(answers, sys.stdout)
"""


@dataclass(frozen=True)
class Study:
    """L units that people and the judge scored, and U that only the judge scored, drawn by seed."""

    kind: str
    people_L: list[float]
    judge_L: list[float]
    judge_U: list[float]

    def ours(self) -> Corrected:
        people_C = [*self.people_L, *[None] * len(self.judge_U)]
        return corrected_mean(people_C, [*self.judge_L, *self.judge_U])


@dataclass(frozen=True)
class PpiEstimate:
    """ppi-python's result for a study: `value` and the 95% interval, with the weight that it was given."""

    kind: str
    labels: int
    units: int
    weight: float
    value: float
    low: float
    high: float


def studies() -> list[Study]:
    return [_drawn(seed, *each) for seed, each in enumerate(STUDIES)]


def _drawn(seed: int, kind: str, labels: int, others: int) -> Study:
    rng = np.random.default_rng(seed)
    truth, noise, other = rng.normal(size=(3, labels + others))
    if kind == "share":
        people, judge = (truth > 0).astype(float), (truth + 0.5 * noise > -0.2).astype(float)
    elif kind == "score":
        people, judge = scipy.special.expit(truth), scipy.special.expit(0.8 * truth + 0.6 * noise + 0.5)
    else:
        people, judge = truth, other
    return Study(kind, people[:labels].tolist(), judge[:labels].tolist(), judge[labels:].tolist())


def answered() -> list[PpiEstimate]:
    """ppi-python's answers. Raises PeerAway if it cannot be installed."""
    python = installed("ppi", f"ppi-python=={VERSION}") / "python"
    drawn = studies()
    given = [[each.people_L, each.judge_L, each.judge_U, each.ours().weight] for each in drawn]
    done = subprocess.run([str(python), "-c", PEER], input=json.dumps(given), capture_output=True, text=True)
    if done.returncode:
        raise PeerAway(f"ppi-python does not run here: {done.stderr.strip()[-200:]}")
    return [
        PpiEstimate(each.kind, len(each.people_L), len(each.people_L) + len(each.judge_U), asked[3], *answer)  # type: ignore[arg-type]
        for each, asked, answer in zip(drawn, given, json.loads(done.stdout), strict=True)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corrected_means", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--keep", action="store_true", help=f"write its answers to {KEPT.name}")
    options = parser.parse_args()
    try:
        answers = answered()
    except PeerAway as error:
        print(error)
        return AWAY
    print(f"{'scores':12}{'people':>8}{'units':>7}{'weight':>9}   ours, then ppi-python {VERSION}")
    for study, answer in zip(studies(), answers, strict=True):
        ours = study.ours().corrected
        said = f"{ours.value:.6f} [{ours.low:.6f}, {ours.high:.6f}]   {answer.value:.6f} [{answer.low:.6f}, {answer.high:.6f}]"
        print(f"{answer.kind:12}{answer.labels:8}{answer.units:7}{answer.weight:9.4f}   {said}")
    if options.keep:
        KEPT.write_text(
            json.dumps({"version": VERSION, "answers": [asdict(each) for each in answers]}, indent=1) + "\n"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
