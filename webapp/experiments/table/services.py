"""Changes that people make to the table: labels of one run, actions on many runs and their undo, saved views."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from django.db import transaction
from django.db.models import BigIntegerField, F, Func, TextField
from django.db.models.functions import Cast
from django.http import Http404
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid

from ..lifecycle import services as runs
from ..lifecycle.states import WORKING, State
from ..models import ACTIVE, LOGGED, OVER, Run, RunQuerySet
from .columns import MAX_SHOWN
from .models import MAX_TAG, RunChange, RunStar, RunTag, RunView, RunViewChoice
from .queries import Layout

MAX_NOTES = 20_000
MAX_TAGS = 30  # of one run
MAX_AT_ONCE = 1000
Kind = RunChange.Kind
CHANGED = Cast(Func(F("runs"), function="jsonb_array_elements_text", output_field=TextField()), BigIntegerField())
"""The ids of the runs of changes, a row for each."""


def star(membership: Membership, run: Run, starred: bool) -> None:
    """Sets or removes a person's star. The same again changes nothing."""
    if starred:
        RunStar.objects.get_or_create(run=run, user=membership.user)
    else:
        RunStar.objects.filter(run=run, user=membership.user).delete()


def plain_notes(text: str) -> str:
    """The notes as they are stored. Browsers send each end of a line as two characters."""
    return text.replace("\0", "").replace("\r\n", "\n").strip()


def write_notes(membership: Membership, run: Run, text: str, seen: str | None = None) -> Run:
    """Stores the notes. Raises Invalid at `notes`; Conflict if they are no longer those that the person has `seen` (None: it does not matter)."""
    text = plain_notes(text)
    if len(text) > MAX_NOTES:
        raise Invalid("These notes are too long.", {"notes": f"at most {MAX_NOTES:,} characters"})
    with transaction.atomic():
        written = Run.objects.select_for_update(no_key=True).values_list("notes", flat=True).get(pk=run.pk)
        if seen is not None and plain_notes(written) not in (plain_notes(seen), text):
            raise Conflict("Somebody has changed the notes since you opened them, so yours are not saved.", "changed")
        Run.objects.filter(pk=run.pk).update(notes=text)
        audit.record(membership, membership.user, "run.notes", run, characters=len(text))
    run.refresh_from_db(from_queryset=Run.objects.with_names())
    return run


def set_tags(membership: Membership, run: Run, names: Sequence[str], seen: Collection[str] | None = None) -> list[str]:
    """Sets the tags of the run to these and no others. Only what differs from the tags that the person has `seen` changes, so tags that others
    have set or removed meanwhile stay as they are now; None: they do not. Raises Invalid at `tags`."""
    named = {tag_name(name) for name in names}
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(pk=run.pk)  # of two people at once, the later one sees the other
        had = set(RunTag.objects.filter(run=run).values_list("name", flat=True))
        wanted = sorted(named if seen is None else (had - (set(seen) - named)) | (named - set(seen)))
        if len(wanted) > MAX_TAGS:
            raise Invalid("These are too many tags.", {"tags": f"a run has at most {MAX_TAGS}"})
        changed = {Kind.UNTAG: had.difference(wanted), Kind.TAG: set(wanted) - had}
        RunTag.objects.filter(run=run, name__in=changed[Kind.UNTAG]).delete()
        RunTag.objects.bulk_create([RunTag(run=run, name=name) for name in changed[Kind.TAG]], ignore_conflicts=True)
        _note_tags(membership, run, changed)
        audit.record(membership, membership.user, "run.tags", run, tags=wanted)
    return wanted


def _note_tags(membership: Membership, run: Run, changed: Mapping[Kind, Collection[str]]) -> None:
    """Stores changes of the tags of one run, so that the undo of an earlier change of many runs leaves them."""
    told = {"workspace_id": membership.workspace_id, "runs": [run.pk], "made_by": membership.user}
    rows = [RunChange(kind=kind, word=word, **told) for kind, words in changed.items() for word in sorted(words)]
    RunChange.objects.bulk_create(rows)


def tag_name(text: str) -> str:
    """The tag in lower case. Raises Invalid at `tags`."""
    name = " ".join(text.replace("\0", "").lower().split())
    if not name or len(name) > MAX_TAG or "," in name or '"' in name:
        raise Invalid("This is not a tag.", {"tags": "1 to 40 characters, without commas and quotes"})
    return name


def group_name(text: str) -> str:
    """The name of a group; empty: no group. Raises Invalid at `group`."""
    name = " ".join(text.replace("\0", "").split())
    if len(name) > 80 or '"' in name:
        raise Invalid("This name cannot be used for a group.", {"group": "at most 80 characters, without quotes"})
    return name


# ---- many at once ----


def archive(membership: Membership, ids: Sequence[int]) -> RunChange:
    """Leaves the runs out of the table; nothing is deleted. Runs that are under way stay in the table."""
    return _change(membership, Kind.ARCHIVE, ids)


def restore(membership: Membership, ids: Sequence[int]) -> RunChange:
    return _change(membership, Kind.RESTORE, ids)


def tag(membership: Membership, ids: Sequence[int], name: str) -> RunChange:
    return _change(membership, Kind.TAG, ids, tag_name(name))


def untag(membership: Membership, ids: Sequence[int], name: str) -> RunChange:
    return _change(membership, Kind.UNTAG, ids, tag_name(name))


def group(membership: Membership, ids: Sequence[int], name: str) -> RunChange:
    """Puts the runs in a group. An empty name takes them out of their groups."""
    return _change(membership, Kind.GROUP, ids, group_name(name))


def _change(membership: Membership, kind: str, ids: Sequence[int], word: str = "") -> RunChange:
    """Changes the runs under their locks, except those that are in the wanted state already. Raises Invalid at `runs`."""
    if not 1 <= len(ids) <= MAX_AT_ONCE:
        raise Invalid("Choose runs first.", {"runs": f"1 to {MAX_AT_ONCE:,} at once"})
    with transaction.atomic():
        rows = list(_locked(membership, ids).present())
        change = RunChange(workspace_id=membership.workspace_id, kind=kind, word=word, made_by=membership.user)
        if kind == Kind.GROUP:
            change.before = {str(row.pk): row.group for row in rows if row.group != word}
        change.runs = sorted(_apply(kind, rows, word))
        change.save()
        _record(membership, f"run.{kind}", change, word)
    return change


def _locked(membership: Membership, ids: Sequence[int]) -> RunQuerySet:
    """Locks the runs in the order of their ids, so that two actions on the same runs cannot deadlock."""
    ours = Run.objects.filter(pk__in=ids, experiment__workspace_id=membership.workspace_id)
    return ours.only("pk", "state", "archived_at", "group").order_by("pk").select_for_update(of=("self",), no_key=True)


def _apply(kind: str, rows: Sequence[Run], word: str) -> list[int]:
    """Changes the rows, and returns the ids that were changed."""
    ids = [row.pk for row in rows]
    if kind == Kind.TAG:
        had = set(RunTag.objects.filter(run__in=ids, name=word).values_list("run_id", flat=True))
        RunTag.objects.bulk_create([RunTag(run_id=pk, name=word) for pk in ids if pk not in had], ignore_conflicts=True)
        return [pk for pk in ids if pk not in had]
    if kind == Kind.UNTAG:
        had = set(RunTag.objects.filter(run__in=ids, name=word).values_list("run_id", flat=True))
        RunTag.objects.filter(run__in=had, name=word).delete()
        return list(had)
    if kind == Kind.GROUP:
        changed = [row.pk for row in rows if row.group != word]
        Run.objects.filter(pk__in=changed).update(group=word)
        return changed
    archives = kind == Kind.ARCHIVE
    changed = [row.pk for row in rows if (row.archived_at is None) == archives and (not archives or row.state in OVER)]
    Run.objects.filter(pk__in=changed).update(archived_at=timezone.now() if archives else None)
    return changed


def _record(membership: Membership, action: str, change: RunChange, word: str) -> None:
    touched = Run.objects.filter(pk__in=change.runs).only("pk")
    audit.record_all(membership, membership.user, action, touched, **({"word": word} if word else {}))


OPPOSITE = {Kind.ARCHIVE: Kind.RESTORE, Kind.RESTORE: Kind.ARCHIVE, Kind.TAG: Kind.UNTAG, Kind.UNTAG: Kind.TAG}


def undo(membership: Membership, change: RunChange) -> RunChange:
    """Undoes what a change did, and nothing else: a run that somebody has changed in the same way since stays as it is. `runs` of the result are
    those that were undone. Raises Conflict if somebody has done so already."""
    with transaction.atomic():
        if not RunChange.objects.filter(pk=change.pk, undone_at=None).update(undone_at=timezone.now()):
            raise Conflict("This was undone already.", code="undone")
        rows = list(_locked(membership, change.runs))
        later = set(_changed_since(change).values_list("pk", flat=True))
        rows = [row for row in rows if row.pk not in later]
        if change.kind == Kind.GROUP:
            undone = [row.pk for row in rows if row.group == change.word]
            for pk in undone:
                Run.objects.filter(pk=pk).update(group=change.before.get(str(pk), ""))
        else:
            undone = sorted(_apply(OPPOSITE[Kind(change.kind)], rows, change.word))
        change.refresh_from_db()
        change.runs = undone
        _record(membership, f"run.undo_{change.kind}", change, change.word)
    return change


def _changed_since(change: RunChange) -> RunQuerySet:
    """The runs of the change that also have a later one of the same kind, or of the opposite kind, with the same word. The caller holds the
    locks of the runs."""
    kinds = {change.kind, OPPOSITE.get(Kind(change.kind), change.kind)}
    later = RunChange.objects.filter(workspace=change.workspace_id, pk__gt=change.pk, kind__in=kinds, undone_at=None)
    if change.kind in (Kind.TAG, Kind.UNTAG):
        later = later.filter(word=change.word)
    return Run.objects.filter(pk__in=change.runs).filter(pk__in=later.annotate(changed=CHANGED).values("changed"))


def _in(membership: Membership, ids: Sequence[int], states: Collection[str]) -> RunQuerySet:
    """Raises Invalid at `runs`."""
    if not 1 <= len(ids) <= MAX_AT_ONCE:
        raise Invalid("Choose runs first.", {"runs": f"1 to {MAX_AT_ONCE:,} at once"})
    mine = Run.objects.with_names().present().filter(pk__in=ids, experiment__workspace_id=membership.workspace_id)
    return mine.filter(state__in=states).order_by("pk")


def stop(membership: Membership, ids: Sequence[int]) -> int:
    """Asks the runs that are under way to end, and returns how many. This cannot be undone, but runs can be resumed. Raises Invalid at
    `runs`."""
    asked = 0
    for run in list(_in(membership, ids, [state for state in ACTIVE if state != State.STOPPING])):
        with suppress(Http404):  # it has ended, and somebody has deleted it; the others are stopped
            runs.stop(membership, run)
            asked += 1
    return asked


def pause(membership: Membership, ids: Sequence[int]) -> tuple[int, list[str]]:
    """Asks the runs that wait or run to save and to give back their places. Returns the same as `resume`."""
    return _each(membership, _in(membership, ids, WORKING | {State.QUEUED}), runs.pause)


def resume(membership: Membership, ids: Sequence[int]) -> tuple[int, list[str]]:
    """Lets paused runs continue, but no run that was stopped or failed. Returns how many, and for each other paused run the reason, such as
    a limit that is used up. Raises Invalid at `runs`."""
    return _each(membership, _in(membership, ids, [State.PAUSED]), runs.resume)


def _each(membership: Membership, chosen: RunQuerySet, act: Callable[[Membership, Run], Run]) -> tuple[int, list[str]]:
    done, refused = 0, []
    for run in list(chosen.exclude(recipe=LOGGED)):
        try:
            act(membership, run)
            done += 1
        except Conflict as problem:
            refused.append(f"{run}: {problem.message}")
        except Http404:
            refused.append(f"{run}: somebody has deleted it")
    return done, refused


# ---- saved views ----


def save_view(membership: Membership, name: str, layout: Layout, folded: bool = False) -> RunView:
    """Saves a view under a name. A view with this name is overwritten. Raises Invalid at `name` or `columns`."""
    name = " ".join(name.replace("\0", "").split())
    if not 1 <= len(name) <= 80:
        raise Invalid("A view needs a name.", {"name": "1 to 80 characters"})
    if len(layout.columns) > MAX_SHOWN:
        raise Invalid("These are too many columns.", {"columns": f"at most {MAX_SHOWN}"})
    fields = {
        "query": layout.query[:1000],
        "sort": layout.sort[:210],
        "columns": list(layout.columns),
        "folded": folded,
        "group_by": layout.group[:210],
    }
    with transaction.atomic():
        view, _ = RunView.objects.update_or_create(
            workspace_id=membership.workspace_id,
            name=name,
            defaults=fields,
            create_defaults={**fields, "created_by": membership.user},
        )
        audit.record(membership, membership.user, "run_view.save", view, name=name)
    return view


def delete_view(membership: Membership, view: RunView) -> None:
    with transaction.atomic():
        audit.record(membership, membership.user, "run_view.delete", view, name=view.name)
        view.delete()


def choose_view(membership: Membership, view: RunView | None) -> None:
    """Chooses the view with which this person's table opens; None: the plain table."""
    mine = RunViewChoice.objects.filter(workspace_id=membership.workspace_id, user=membership.user)
    if view is None:
        mine.delete()
        return
    RunViewChoice.objects.update_or_create(
        workspace_id=membership.workspace_id, user=membership.user, defaults={"view": view}
    )
