"""Do people match reasons as a run's matcher does? A reviewer matches judgements blind to it, and the two are compared."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction

from trainer.metrics.estimate import Estimate, bootstrap_ratio
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid

from ..models import ReasonMatching, Rollout, Run

PART = "rationale"  # the part of the reward that matches reasons
SAME = 0.5  # scores above say the same, for any matcher
DRAWN_FROM = 500  # the newest judgements
Place = tuple[int, str, int, int]
"""step, phase, group, index."""
Pairs = Collection[tuple[int, int]]


@dataclass(frozen=True)
class MatchTask:
    """A judgement that waits for a person: two lists of reasons and what they are about. `found` is the matcher's result."""

    place: Place
    question: str
    human: list[str]
    model: list[str]
    matcher: str
    found: list[tuple[int, int]]

    @property
    def address(self) -> str:
        return "/".join(map(str, self.place))


@dataclass(frozen=True)
class MatcherAgreement:
    """The agreement of one matcher with people. A case is a pair of reasons, one of each list; intervals resample judgements.

    `agree`: cases of which both say the same. `recall`: of people's matches, those that the matcher found. `precision`: of the matcher's,
    those that people confirm.
    """

    matcher: str
    judgements: int
    agree: Estimate
    recall: Estimate
    precision: Estimate


def matches_reasons(run: Run) -> bool:
    """Whether the run's reward has a part that matches reasons."""
    return run.recipe == "judge"


def agreements(run: Run) -> list[MatcherAgreement]:
    """The agreement of each matcher of the run, by name; empty if nobody has matched a judgement."""
    by_matcher: dict[str, list[ReasonMatching]] = {}
    for row in ReasonMatching.objects.filter(run=run).order_by("id"):
        by_matcher.setdefault(row.matcher, []).append(row)
    return [_agreement(matcher, rows) for matcher, rows in sorted(by_matcher.items())]


def _agreement(matcher: str, rows: list[ReasonMatching]) -> MatcherAgreement:
    people = [_pairs(row.matches) for row in rows]
    found = [_pairs(row.found) for row in rows]
    cells = [row.human * row.model for row in rows]
    both = [len(a & b) for a, b in zip(people, found, strict=True)]
    same = [n - len(a ^ b) for n, a, b in zip(cells, people, found, strict=True)]
    return MatcherAgreement(
        matcher,
        len(rows),
        _share(same, cells, ""),
        _share(both, list(map(len, people)), "people saw no match"),
        _share(both, list(map(len, found)), "the matcher found no match"),
    )


def _share(above: list[int], below: list[int], empty: str) -> Estimate:
    return bootstrap_ratio(above, below, clusters=range(len(below)), empty=empty, share=True)


def waiting(run: Run) -> MatchTask | None:
    """The next judgement to match: drawn among the newest, the same for everybody until it is matched. None: none is left."""
    done = set(_places(ReasonMatching.objects.filter(run=run)))
    newest = Rollout.objects.filter(run=run, **{f"part_values__{PART}__isnull": False}).order_by("-id")[:DRAWN_FROM]
    for place in sorted(set(_places(newest)) - done, key=lambda place: _drawn(run, place)):
        if judgement := _judgement(run, place):
            return judgement
    return None


def save(membership: Membership, run: Run, address: str, matches: Iterable[str]) -> None:
    """Stores a person's matches of a judgement, each `human-model`; an empty list means that no two reasons say the same.

    Raises Invalid for an unknown judgement or pair, Conflict if another person was faster.
    """
    judgement = _judgement(run, _place(address))
    if judgement is None:
        raise Invalid("There is no such judgement of this run.", {"judgement": "none with two lists of reasons"})
    pairs = sorted({_pair(text, judgement) for text in matches})
    step, phase, group, index = judgement.place
    try:
        with transaction.atomic():
            ReasonMatching.objects.create(
                run=run,
                step=step,
                phase=phase,
                group=group,
                index=index,
                human=len(judgement.human),
                model=len(judgement.model),
                matches=pairs,
                found=judgement.found,
                matcher=judgement.matcher,
                made_by=membership.user,
            )
            audit.record(membership, membership.user, "run.reasons_matched", run, judgement=judgement.address)
    except IntegrityError:
        raise Conflict("Somebody else has matched this judgement in the meantime.") from None


def _places(rows: Any) -> list[Place]:
    return list(rows.values_list("step", "phase", "group", "index"))


def _drawn(run: Run, place: Place) -> str:
    """A key for a random order that does not depend on the content of the judgements."""
    return hashlib.sha256(f"{run.pk} {place}".encode()).hexdigest()


def _judgement(run: Run, place: Place) -> MatchTask | None:
    """None if it is gone, or if one of its lists is empty."""
    step, phase, group, index = place
    row = Rollout.objects.filter(run=run, step=step, phase=phase, group=group, index=index).first()
    parts: list[Mapping[str, Any]] = row.content.get("parts", []) if row else []
    shown = next((part.get("shown") for part in parts if part.get("kind") == PART), None)
    if row is None or not isinstance(shown, dict) or not shown.get("scores"):
        return None
    found = [(h, m) for h, line in enumerate(shown["scores"]) for m, score in enumerate(line) if score > SAME]
    human, model = shown["human"], shown["reasons"]
    return MatchTask(place, row.content["prompt"], human, model, shown.get("matcher", ""), found)


def _place(address: str) -> Place:
    step, phase, group, index = (*address.split("/"), "", "", "", "")[:4]
    if phase not in ("train", "eval") or not all(part.isdecimal() and len(part) < 10 for part in (step, group, index)):
        raise Invalid("There is no such judgement of this run.", {"judgement": "expected step/phase/group/index"})
    return int(step), phase, int(group), int(index)


def _pair(text: str, judgement: MatchTask) -> tuple[int, int]:
    human, _, model = text.partition("-")
    if human.isdecimal() and model.isdecimal() and len(text) < 10:
        pair = int(human), int(model)
        if pair[0] < len(judgement.human) and pair[1] < len(judgement.model):
            return pair
    raise Invalid("These are not two reasons of the judgement.", {"matches": f"{text[:40]!r} is not a pair of reasons"})


def _pairs(stored: Iterable[Iterable[int]]) -> set[tuple[int, int]]:
    return {(human, model) for human, model in stored}
