"""People of a project as the API returns them."""

from typing import Any

from ..agreement.person_figures import Figures
from ..agreement.pseudonyms import day
from .queries import Person


def person(row: Person, named: bool) -> dict[str, Any]:
    who = {"user": row.user.pk, "name": row.user.name, "email": row.user.email} if named else {}
    return {
        "rater": row.rater.pseudonym if row.rater else None,
        **who,
        "role": row.role,
        "takes_part": row.takes_part,
        "paused": row.paused,
        "joined_at": row.joined_at if named else None,
        "last_at": row.last_at if named or row.last_at is None else day(row.last_at),
        "skipped": row.skipped,
        "open": row.open,
        "total": figures(row.total),
        "points": [{"at": point.at, **figures(point)} for point in row.points],
        "warnings": row.warnings,
    }


def figures(row: Figures) -> dict[str, Any]:
    shares = {name: getattr(row, name) for name in ("fast", "gold", "agreement")}
    shown = {name: {"part": s.part, "whole": s.whole, "value": s.value} for name, s in shares.items()}
    return {"done": row.done, "median_seconds": row.median_seconds, **shown}
