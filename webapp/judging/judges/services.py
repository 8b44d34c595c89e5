"""Judges and their versions are made, named and archived. A version never changes: a change is the next version."""

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from trainer.judges.spec import BaseSpec, digest, resolve
from webapp.accounts.models import Membership
from webapp.core import archiving
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.core.text.texts import one_line
from webapp.datasets.models import Example
from webapp.inference.endpoints.services import mark_used
from webapp.inference.models import Endpoint
from webapp.webhooks.services import announce

from ..models import MAX_NAME, Judge, JudgeVersion

MOST_EXAMPLES = 50
MOST_NOTE = 300


def create_judge(
    membership: Membership, *, name: str, spec: dict[str, Any], endpoint: Endpoint, note: str = ""
) -> JudgeVersion:
    """A new judge with its first version. Raises Invalid at `name`, `endpoint` or `note`, ConfigInvalid at the spec's
    fields."""
    resolved = resolve(spec)
    usable(endpoint, membership)
    try:
        with transaction.atomic():
            judge = Judge.objects.create(
                workspace=membership.workspace,
                name=_named(name),
                kind=resolved.kind,
                created_by=membership.user,
            )
            version = _add(membership, judge, 1, resolved, endpoint, note)
            audit.record(membership, membership.user, "judge.created", judge, name=judge.name, kind=judge.kind)
    except IntegrityError as error:
        raise Invalid("The name is taken.", {"name": "another judge of this workspace has it"}) from error
    return version


@transaction.atomic
def new_version(
    membership: Membership, judge: Judge, *, spec: dict[str, Any], endpoint: Endpoint, note: str = ""
) -> JudgeVersion:
    """The judge's next version, or an earlier one that says the same already.

    Raises ConfigInvalid at the spec's fields, its kind among them: a judge keeps its kind.
    """
    resolved = resolve(spec)
    if resolved.kind != judge.kind:
        raise Invalid(
            "The kind of a judge cannot change.", {"kind": f"this judge is of kind {judge.kind}; create another judge"}
        )
    usable(endpoint, membership)
    Judge.objects.select_for_update(no_key=True).get(pk=judge.pk)  # two savings at once must not take the same number
    same = judge.versions.filter(digest=version_digest(resolved, endpoint)).first()
    if same is not None:
        return same
    last = judge.versions.aggregate(last=Max("number"))["last"] or 0
    return _add(membership, judge, last + 1, resolved, endpoint, note)


def version_digest(spec: BaseSpec, endpoint: Endpoint) -> str:
    """The digest in the keys of verdicts. An endpoint keeps its model once it is used, so its id says which model answers."""
    return digest(spec, str(endpoint.pk))


def begin_use(version: JudgeVersion) -> None:
    """Marks version and endpoint as used, before the first call: from now on they never change."""
    mark_used(version.endpoint)
    if version.first_used_at is None:
        version.first_used_at = timezone.now()
        JudgeVersion.objects.filter(pk=version.pk, first_used_at=None).update(first_used_at=version.first_used_at)


def rename(membership: Membership, judge: Judge, name: str) -> None:
    """Raises Invalid at `name`."""
    judge.name = _named(name)
    try:
        with transaction.atomic():
            judge.save(update_fields=["name"])
            audit.record(membership, membership.user, "judge.renamed", judge, name=judge.name)
    except IntegrityError as error:
        raise Invalid("The name is taken.", {"name": "another judge of this workspace has it"}) from error


def archive(membership: Membership, judge: Judge) -> None:
    """Takes the judge off the list; its versions and verdicts stay."""
    archiving.archive(membership, judge, "judge")


def restore(membership: Membership, judge: Judge) -> None:
    """Puts an archived judge back on the list."""
    archiving.restore(membership, judge, "judge")


@transaction.atomic
def fix_examples(membership: Membership, judge: Judge, examples: Sequence[int]) -> None:
    """Sets the examples on which the judge's versions are compared. Raises Invalid at `examples`."""
    chosen = chosen_examples(membership, examples)
    judge.fixed_dataset = chosen[0].dataset
    judge.fixed_examples = [example.pk for example in chosen]
    judge.save(update_fields=["fixed_dataset", "fixed_examples"])
    audit.record(membership, membership.user, "judge.examples_fixed", judge, examples=judge.fixed_examples)


def chosen_examples(membership: Membership, ids: Sequence[int], most: int = MOST_EXAMPLES) -> list[Example]:
    """Examples of one dataset of the workspace, in the order given. Raises Invalid at `examples`."""
    ids = list(dict.fromkeys(ids))
    if not 1 <= len(ids) <= most:
        raise Invalid("Choose other examples.", {"examples": f"choose 1 to {most} examples; you chose {len(ids)}"})
    rows = Example.objects.filter(dataset__workspace=membership.workspace, pk__in=ids).select_related("dataset")
    found = {row.pk: row for row in rows}
    unknown = [str(each) for each in ids if each not in found]
    if unknown:
        raise Invalid("Some examples are not there.", {"examples": f"not in this workspace: {', '.join(unknown[:10])}"})
    if len({row.dataset_id for row in found.values()}) > 1:
        raise Invalid("The examples come from several datasets.", {"examples": "choose examples of one dataset"})
    return [found[each] for each in ids]


def _add(
    membership: Membership, judge: Judge, number: int, spec: BaseSpec, endpoint: Endpoint, note: str
) -> JudgeVersion:
    note = " ".join(note.split())
    if len(note) > MOST_NOTE:
        raise Invalid("The note is too long.", {"note": f"at most {MOST_NOTE} characters"})
    version = JudgeVersion.objects.create(
        judge=judge,
        number=number,
        spec=spec.model_dump(mode="json"),
        endpoint=endpoint,
        digest=version_digest(spec, endpoint),
        note=note,
        created_by=membership.user,
    )
    audit.record(membership, membership.user, "judge.version_made", version, judge=judge.pk, number=number)
    facts = {"judge": judge.pk, "name": judge.name, "kind": judge.kind, "version": number, "digest": version.digest}
    announce(membership.workspace_id, "judge.versioned", facts, by=membership.user_id)
    return version


def _named(name: str) -> str:
    return one_line(name, MAX_NAME, "The judge needs a name.")


def usable(endpoint: Endpoint, membership: Membership) -> None:
    """Raises Invalid at `endpoint` or Conflict if no judge of this workspace can ask it."""
    if endpoint.workspace_id != membership.workspace_id:
        raise Invalid("Choose another endpoint.", {"endpoint": "must be an endpoint of this workspace"})
    if endpoint.kind == Endpoint.Kind.REWARD:
        raise Invalid(
            "Choose another endpoint.", {"endpoint": f"{endpoint.name} is a reward service, which no judge can ask"}
        )
    if endpoint.archived_at is not None:
        raise Conflict(f"The endpoint {endpoint.name} is archived. Restore it on its page.", "archived")
