"""The measures of a finished run, read off its events."""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trainer.contracts import jsonlines
from trainer.metrics.claims.curves import curves_of, measure_curves
from trainer.metrics.claims.responses import ENTROPY, SCORE, measured_responses, reads


def of_responses(events: Path) -> dict[str, Any]:
    """Measures of its policy's responses to the held-out prompts and of the shape of its curves (`trainer.metrics.claims.responses`),
    and `curve` of held-out score and of entropy by step.
    """
    curves = _curves(events, reads)
    return {
        **measured_responses(curves),
        "curve": {"score": curves.get(SCORE, {}), "entropy": curves.get(ENTROPY, {})},
    }


def of_run(events: Path, measures: Sequence[str]) -> dict[str, Any]:
    """Each measure, read off its curve (`trainer.metrics.claims.curves`), and `curve` of each metric by step."""
    wanted = curves_of(measures)
    found = _curves(events, set(wanted).__contains__)
    curves = {key: found.get(key, {}) for key in wanted}
    return {**measure_curves(curves, measures), "curve": curves}


def _curves(events: Path, wanted: Callable[[str], bool]) -> dict[str, dict[int, float]]:
    """The metrics by step; if a resumed run repeated a step, it counts once."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for line in jsonlines.lines(events.read_text(encoding="utf-8")):
        if '"metrics"' not in line:
            continue
        event: dict[str, Any] = json.loads(line)
        if event["data"]["kind"] == "metrics":
            for key, value in event["data"]["values"].items():
                if wanted(key):
                    found[key][event["step"]] = value
    return {key: dict(sorted(curve.items())) for key, curve in found.items()}
