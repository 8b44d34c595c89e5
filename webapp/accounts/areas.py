"""Areas of the API, and which of them a token opens: an area is closed unless the token names it.

`OF` is the only table from addresses to areas. An address that it does not know is closed to every token until it gets a line; a test
checks all operations. A GET needs the right to read, everything else the right to write; a token that may write may read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from webapp.core.problems import Invalid, Problem

READING = ("GET", "HEAD", "OPTIONS")
PREFIX = "/api/v1/"
_ID = re.compile(r"\d+|{\w+}")


class Right(StrEnum):
    READ = "read"
    WRITE = "write"


class Area(StrEnum):
    ACCOUNT = "account"
    ADMINISTRATION = "administration"
    ANNOTATION = "annotation"
    DATASETS = "datasets"
    EVALUATION = "evaluation"
    EXPERIMENTS = "experiments"
    JUDGING = "judging"
    MODELS = "models"


ABOUT = {
    Area.ACCOUNT: "your own tokens and notices, what you watch, what needs your attention",
    Area.ADMINISTRATION: "members, invitations, webhooks, time-outs, whether share links are allowed, the rule that deletes checkpoints, everybody's tokens",
    Area.ANNOTATION: "projects, tasks, answers, comments",
    Area.DATASETS: "datasets, versions, examples, imports, curation",
    Area.EVALUATION: "evaluations, recordings, leaderboards",
    Area.EXPERIMENTS: "experiments, runs, recipes, claims, reports, share links, lineage, costs; live messages",
    Area.JUDGING: "judges, their trials and verdicts, verifiers",
    Area.MODELS: "models, endpoints, jobs with weights, trying",
}
# Keyed by the first parts of an address; the longest match counts; `*` is an id. None: open to every token
OF: Mapping[str, Area | None] = {
    "me": None,
    "me/data": Area.ACCOUNT,  # and of people who are signed in: see `access.by_hand`
    "version": None,
    "workspaces": None,
    "tokens": Area.ACCOUNT,
    "notices": Area.ACCOUNT,
    "needs": Area.ACCOUNT,
    "watches": Area.ACCOUNT,
    "tokens/all": Area.ADMINISTRATION,
    "members": Area.ADMINISTRATION,
    "share-links/allowed": Area.ADMINISTRATION,
    "retention": Area.ADMINISTRATION,
    "time-outs": Area.ADMINISTRATION,
    "webhooks": Area.ADMINISTRATION,
    "assignments": Area.ANNOTATION,
    "comments": Area.ANNOTATION,
    "projects": Area.ANNOTATION,
    "render": Area.ANNOTATION,
    "rubrics": Area.ANNOTATION,
    "tasks": Area.ANNOTATION,
    "curations": Area.DATASETS,
    "datasets": Area.DATASETS,
    "examples": Area.DATASETS,
    "imports": Area.DATASETS,
    "probes": Area.DATASETS,
    "views": Area.DATASETS,
    "evaluations": Area.EVALUATION,
    "leaderboards": Area.EVALUATION,
    "claims": Area.EXPERIMENTS,
    "costs": Area.EXPERIMENTS,
    "sweeps": Area.EXPERIMENTS,
    "experiments": Area.EXPERIMENTS,
    "lineage": Area.EXPERIMENTS,
    "recipes": Area.EXPERIMENTS,
    "repeats": Area.EXPERIMENTS,
    "reports": Area.EXPERIMENTS,
    "runs": Area.EXPERIMENTS,
    "share-links": Area.EXPERIMENTS,
    "judge-kinds": Area.JUDGING,
    "judge-trials": Area.JUDGING,
    "judges": Area.JUDGING,
    "verdicts": Area.JUDGING,
    "verifiers": Area.JUDGING,
    "endpoints": Area.MODELS,
    "models": Area.MODELS,
    "models/*/judge": Area.JUDGING,  # creates a judge of a trained model
    "try": Area.MODELS,
    "weights-jobs": Area.MODELS,
}


@dataclass(frozen=True)
class Need:
    """The right that an operation asks of a token, such as `datasets:write`."""

    area: Area
    right: Right

    def __str__(self) -> str:
        return f"{self.area}:{self.right}"


class LacksArea(Problem):
    """`extra.needed` names what is missing, as `Need` writes it."""

    def __init__(self, need: Need | None) -> None:
        message = (
            f"This token lacks {need}. Make one that has it, under Settings → API tokens."
            if need
            else "A token cannot use this address."
        )
        super().__init__(message, code="token_lacks_area", status=403, extra={"needed": str(need)} if need else {})


class Unplaced(LookupError):
    """The table does not have the address."""


def right_needed(method: str, path: str) -> Need | None:
    """The right that a request needs of a token; None if it needs nothing. Raises Unplaced."""
    parts = ["*" if _ID.fullmatch(part) else part for part in path.removeprefix(PREFIX).strip("/").split("/")]
    for length in (3, 2, 1):
        if (start := "/".join(parts[:length])) in OF:
            area = OF[start]
            return None if area is None else Need(area, Right.READ if method in READING else Right.WRITE)
    raise Unplaced(path)


def allow(rights: Mapping[str, str], need: Need | None) -> bool:
    """Whether the rights of a token, {area: right}, include this one."""
    return need is None or _covers(rights.get(need.area), need.right)


def check(rights: Mapping[str, str], need: Need | None) -> None:
    """Checks the rights of a token, {area: right}. Raises LacksArea."""
    if not allow(rights, need):
        raise LacksArea(need)


def check_request(rights: Mapping[str, str], method: str, path: str) -> None:
    """Checks the rights of a token for a request, {area: right}. Raises LacksArea."""
    try:
        check(rights, right_needed(method, path))
    except Unplaced:
        raise LacksArea(None) from None


def _covers(held: str | None, right: Right) -> bool:
    return held == Right.WRITE or held == right


def in_words(rights: Mapping[str, str]) -> str:
    """The rights in words, such as "everything: read", or "datasets: read · models: write"."""
    held = set(rights.values())
    if set(rights) == set(Area) and len(held) == 1:
        return f"everything: {held.pop()}"
    return " · ".join(f"{area}: {right}" for area, right in sorted(rights.items())) or "nothing"


def rights_in_all_areas(right: str) -> dict[str, str]:
    """The rights of a token that has `right` in every area. Raises Invalid at `scope`."""
    if right not in list(Right):
        raise Invalid("Unknown scope.", {"scope": "must be read or write"})
    return dict.fromkeys(map(str, Area), right)


def checked(rights: Mapping[str, str]) -> dict[str, str]:
    """Validates rights. Raises Invalid at `areas`, also for a token that would open nothing."""
    if not rights:
        raise Invalid("A token needs an area.", {"areas": "choose at least one"})
    for area, right in rights.items():
        if area not in list(Area):
            raise Invalid("Unknown area.", {f"areas.{area}": f"must be one of {', '.join(Area)}"})
        if right not in list(Right):
            raise Invalid("Unknown right.", {f"areas.{area}": "must be read or write"})
    return dict(rights)
