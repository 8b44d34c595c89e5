"""Sends rollouts to annotation: they become examples of a project that people work in, or a dataset for a new project.

Sent twice they are sent once: the key of an example is made of its rollouts, and writers wait for each other.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from django.db import transaction
from django.db.models import Q

from trainer.contracts import Example
from trainer.contracts.plurals import with_noun
from webapp.accounts.models import Membership
from webapp.annotation import kinds
from webapp.annotation.models import Project
from webapp.annotation.projects import receiving
from webapp.core.auditing import audit
from webapp.core.database import locks
from webapp.core.problems import Invalid
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.queries import examples_by_key
from webapp.datasets.versions import services as datasets

from ..models import Rollout, Run
from . import sent_examples
from .datasets import asked_the_data
from .queries import RolloutQuery, Sort, rollouts
from .sent_examples import SHAPES, CannotAsk

MOST = 500
"""Rollouts that are sent at once."""
MOST_PAGES = 50
"""Pages of a list that are looked through for what is sent: each may cost a second."""
ABOUT = "Responses of runs, for people to judge."
LINEAGE = "sent"
"""`lineage["from"]` of the versions that hold them."""
Place = tuple[int, str, int, int]  # step, phase, group, index
GroupPlace = tuple[int, str, int]


@dataclass(frozen=True)
class ChosenGroup:
    """A group of rollouts, all of them or those that `index` names."""

    step: int
    phase: str
    group: int
    index: tuple[int, ...] = ()

    @property
    def condition(self) -> Q:
        found = Q(step=self.step, phase=self.phase, group=self.group)
        return found & Q(index__in=self.index) if self.index else found


@dataclass
class Prepared:
    """The examples of a kind, and what none could be made of: {why: how many}."""

    kind: str
    records: list[Example] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def left_out_words(self) -> str:
        return "; ".join(f"{why} ({with_noun(number, 'responses')})" for why, number in self.left_out.items())


@dataclass(frozen=True)
class SentToProject:
    """`new` examples were added to the project; `before` were there already."""

    project: Project
    new: int
    before: int
    prepared: Prepared


def named(run: Run, groups: Sequence[ChosenGroup]) -> list[Rollout]:
    """The rollouts that are named by their places. Raises Invalid at `groups` if there is none, or more than MOST."""
    if not groups:
        raise Invalid("No rollout is chosen.", {"groups": "name at least one"})
    wanted = reduce(or_, (each.condition for each in groups))
    found = list(Rollout.objects.filter(wanted, run=run).order_by("step", "phase", "group", "index")[: MOST + 1])
    if not found:
        raise Invalid("There is no such rollout.", {"groups": "name none that the run has"})
    if len(found) > MOST:
        raise Invalid("These are too many rollouts.", {"groups": f"hold more than the {MOST} that are sent at once"})
    return found


def listed(run: Run, wanted: RolloutQuery, sort: Sort | None, most: int) -> list[Rollout]:
    """The first `most` rollouts of a filtered list. Raises Invalid at `most` or `filters`."""
    if not 0 < most <= MOST:
        raise Invalid("This number cannot be sent.", {"most": f"must be from 1 to {MOST}"})
    found: list[Rollout] = []
    cursor = None
    for _ in range(MOST_PAGES):  # a search for words may leave a page short of what it looked through
        page = rollouts(run, wanted, sort=sort, cursor=cursor, limit=most - len(found))
        found, cursor = found + page.items, page.next
        if cursor is None or len(found) == most:
            break
    else:
        raise Invalid(
            "The search takes too long.", {"filters": "fit too seldom: search in one step, or for rarer words"}
        )
    if not found:
        raise Invalid("No rollout is chosen.", {"filters": "no rollout of the run fits them"})
    return found


def prompts(run: Run, chosen: Sequence[Rollout]) -> dict[str, Example]:
    """The examples of the run's data whose prompts the rollouts answer, by key; none if the run was asked questions about them."""
    if not run.dataset_version_id or not asked_the_data(run):
        return {}
    return examples_by_key(run.data, list({row.example_key for row in chosen}))


def prepare(run: Run, kind: str, chosen: Sequence[Rollout], known: Mapping[str, Example]) -> Prepared:
    """The examples of a kind that are made of these rollouts; makes nothing yet. `known` are their `prompts`.

    A response alone is an example of a kind that judges one. For a comparison, the chosen responses of a group stand together: for a pair
    the one with the highest and the one with the lowest reward. If only one is chosen, its whole group is taken for a ranking, and for a
    pair the response whose reward is furthest from it. Raises Invalid at `kind`.
    """
    if kind not in SHAPES:
        raise Invalid("People cannot be asked this about rollouts.", {"kind": f"must be one of {', '.join(SHAPES)}"})
    found = Prepared(kind)
    for rows in _gathered(run, SHAPES[kind], chosen):
        try:
            found.records.append(sent_examples.example(run, kind, rows, known.get(rows[0].example_key)))
        except CannotAsk as why:
            found.left_out[str(why)] = found.left_out.get(str(why), 0) + 1
    return found


def send(membership: Membership, run: Run, prepared: Prepared, project_id: int) -> SentToProject:
    """Adds the examples to a project of their kind. Raises Invalid at `project`, or at `kind` if there is nothing to add."""
    _check(prepared)
    kind = Project.objects.filter(workspace_id=membership.workspace_id, pk=project_id).values_list("kind").first()
    if kind is not None and kind[0] != prepared.kind:
        title = kinds.get_kind(prepared.kind).title.lower()
        raise Invalid("The project asks something else.", {"project": f"must be one for {title}"})
    with transaction.atomic():
        project, new = receiving.receive(membership, project_id, prepared.records, LINEAGE, run=run.pk, name=_name(run))
        if new:
            _record(membership, run, len(new), project=project.pk)
    return SentToProject(project, len(new), len(prepared.records) - len(new), prepared)


def begin(membership: Membership, run: Run, prepared: Prepared, name: str) -> tuple[DatasetVersion, int]:
    """A version of dataset `name` with the examples, for a project that is set up next, and how many of them are new in it. A dataset of
    that name that holds sent rollouts gets what it does not have. Raises Invalid at `name`, or at `kind` if there is nothing to send."""
    _check(prepared)
    with transaction.atomic():
        locks.until_commit(locks.Work.COLLECT, membership.workspace_id)
        name = datasets.dataset_name(name)
        found = Dataset.objects.filter(workspace_id=membership.workspace_id, name=name).first()
        base = found.versions.order_by("-number").first() if found else None
        if found is None or base is None or base.lineage.get("from") != LINEAGE:
            found, base = datasets.create_dataset(membership, name, ABOUT), None  # refuses a name that is taken
        fresh = _fresh(base, prepared.records)
        if base is not None and not fresh:
            return base, 0
        told = {"from": LINEAGE, "run": run.pk, "name": _name(run)}
        version = datasets.new_version(membership, found, fresh, base, told)
        _record(membership, run, len(fresh), version=version.pk)
        return version, len(fresh)


def _fresh(base: DatasetVersion | None, records: Sequence[Example]) -> list[Example]:
    if base is None:
        return list(records)
    members = base.members.filter(example__key__in=[each.key for each in records])
    known = set(members.values_list("example__key", flat=True))
    return [each for each in records if each.key not in known]


def _check(prepared: Prepared) -> None:
    if not prepared.records:
        why = f"none of these rollouts can be asked about: {prepared.left_out_words}"
        raise Invalid("There is nothing to send.", {"kind": why})


def _record(membership: Membership, run: Run, count: int, **where: int) -> None:
    audit.record(membership, membership.user, "run.rollouts_sent", run, count=count, **where)


def _name(run: Run) -> str:
    return f"{run.experiment.name}, {run}"


def _gathered(run: Run, shape: str, chosen: Sequence[Rollout]) -> Iterable[list[Rollout]]:
    """The rollouts of each example."""
    if shape == "single":
        return [[row] for row in chosen]
    groups: dict[GroupPlace, list[Rollout]] = defaultdict(list)
    for row in chosen:
        groups[_group(row)].append(row)
    peers = _peers(run, [place for place, rows in groups.items() if len(rows) == 1])
    if shape == "group":
        return [peers.get(place, rows) for place, rows in groups.items()]
    return [_pair(rows[0], peers[place]) if len(rows) == 1 else _ends(rows) for place, rows in groups.items()]


def _group(row: Rollout) -> GroupPlace:
    return row.step, row.phase, row.group


def _peers(run: Run, places: Sequence[GroupPlace]) -> Mapping[GroupPlace, list[Rollout]]:
    """All rollouts of these groups."""
    found: dict[GroupPlace, list[Rollout]] = defaultdict(list)
    if places:
        wanted = reduce(or_, (Q(step=step, phase=phase, group=group) for step, phase, group in places))
        for row in Rollout.objects.filter(wanted, run=run).order_by("index"):
            found[_group(row)].append(row)
    return found


def _ends(rows: Sequence[Rollout]) -> list[Rollout]:
    """The rollouts with the highest and the lowest reward; those without one come last."""
    ordered = sorted(rows, key=lambda row: (row.reward is None, -(row.reward or 0.0), row.index))
    valued = [row for row in ordered if row.reward is not None]
    return [ordered[0], valued[-1] if len(valued) > 1 else ordered[1]]


def _pair(row: Rollout, group: Sequence[Rollout]) -> list[Rollout]:
    """The rollout and the other of its group whose reward is furthest from it; alone if there is no other text."""
    text = row.content["response"]
    others = [each for each in group if each.pk != row.pk and each.content["response"] != text]

    def apart(other: Rollout) -> float:
        return -1.0 if other.reward is None or row.reward is None else abs(other.reward - row.reward)

    return [row, max(others, key=apart)] if others else [row]


def told(sent: SentToProject) -> str:
    """The result, in words."""
    words = (
        f"{with_noun(sent.new, 'examples')} went to {sent.project}."
        if sent.new
        else f"{sent.project} had them already."
    )
    if sent.new and sent.before:
        words += f" {sent.before} were there already."
    return f"{words} Left out: {sent.prepared.left_out_words}." if sent.prepared.left_out else words
