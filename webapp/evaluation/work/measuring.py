"""Measures that need a model's weights: made in a process of their own, which a worker starts and waits for."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from trainer.contracts import jsonlines
from webapp.core.background.children import environment

from ..recipes.base import NotMeasured

PATIENCE_S = 3_600


def measure(command: Sequence[str], lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The output of the command for JSON lines as `trainer.response_measures` reads them. Raises NotMeasured."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    try:
        done = subprocess.run(
            list(command),
            cwd=settings.BASE_DIR,
            env=environment(),
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotMeasured(f"the process that measures it could not be run: {error}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise NotMeasured(f"the process that measures it failed: {last[:300]}")
    return jsonlines.rows(done.stdout)


def embedding_diversity(texts: dict[str, list[str]]) -> dict[str, float | None]:
    """Mean cosine distance of the texts under each key; None for fewer than two. Raises NotMeasured."""
    several = {key: listed for key, listed in texts.items() if len(listed) > 1}
    found: dict[str, float | None] = dict.fromkeys(texts)
    if several:
        _, *rows = measure(settings.DIVERSITY_COMMAND, [{"id": k, "texts": listed} for k, listed in several.items()])
        found |= {row["id"]: row["diversity"] for row in rows}
    return found
