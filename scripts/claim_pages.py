"""Writes the pages of docs/results/ again from the numbers beside them, for example when a sentence of a plan was reworded.

No run is made: each page is what `trainer.claims.report` says of the measures in its JSON. `tests/trainer/claims/test_pages.py` compares.
"""

import json
from pathlib import Path
from typing import cast

from trainer.claims import report
from trainer.metrics.claims import PLANS, Size, judge_all

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"


def published() -> list[Path]:
    """The files with the numbers of a plan; other results are beside them."""
    return [path for path in sorted(RESULTS.glob("*.json")) if path.stem.rpartition("-")[0] in PLANS]


def again(path: Path) -> tuple[str, str]:
    """The page and the JSON as they are written today."""
    name, _, size = path.stem.rpartition("-")
    plan, stored = PLANS[name], json.loads(path.read_text())
    measures = {arm: {int(seed): found for seed, found in of.items()} for arm, of in stored["measures"].items()}
    results = judge_all(plan.claims, measures)
    page = report.markdown(plan, cast(Size, size), results, measures, stored["about"])
    return page, json.dumps(report.as_json(results, measures, stored["about"]), indent=1) + "\n"


def main() -> None:
    for path in published():
        page, numbers = again(path)
        path.with_suffix(".md").write_text(page)
        path.write_text(numbers)


if __name__ == "__main__":
    main()
