"""Leaderboards as the API shows them."""

from typing import Any

from ..serializers import dataset
from .boards import Board


def board(found: Board) -> dict[str, Any]:
    return {
        "benchmark": found.address,
        "protocol": found.protocol,
        "recipe": found.recipe.name,
        "measure": found.recipe.measure,
        "settings": found.settings,
        "dataset": dataset(found.newest),
        "evaluations": found.evaluations,
        "rows": [
            {
                "name": row.name,
                "cell": row.cell,
                "evaluation": row.evaluation.pk,
                "judge": row.judge,
                "judge_version": row.judge_version,
                "place": row.place,
                "shared": row.shared,
                "unlike": row.unlike,
            }
            for row in found.rows
        ],
    }
