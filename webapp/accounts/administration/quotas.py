"""Each workspace has limits: its own, or those of the installation if it has none.

Code that enforces a limit counts under a lock, so that two requests at once do not both take the last place: runs under the lock of the
line of runs, imports under the workspace's row.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from django.db import transaction

from webapp.core.auditing import audit
from webapp.core.problems import Invalid, Problem

from ..models import Membership, Quota, User, Workspace

MOST = 2**62
GB = 2**30  # as pages show sizes


@dataclass(frozen=True)
class Limits:
    """Limits of a workspace; None means no limit. `gpus`: the GPUs that its runs and jobs hold at once. `import_bytes`: the files of
    imports
    that are under way or have made a version. `logged_bytes`: files that other programs have sent with runs that they log here."""

    running_runs: int | None = None
    imports_at_once: int | None = None
    import_bytes: int | None = None
    gpus: int | None = None
    logged_bytes: int | None = None


NAMES = tuple(each.name for each in fields(Limits))


class OverQuota(Problem):
    """The request needs more than the workspace may use; `fields` says which fields asked for it (409)."""

    def __init__(self, message: str, fields: dict[str, str]) -> None:
        super().__init__(f"{message} Ask an administrator of this installation for more.", fields, "over_quota", 409)


def too_many_gpus(most: int) -> str:
    """The end of the sentence that refuses a request for more GPUs than its workspace may hold."""
    return f"this workspace may hold {most} at once; lower it, or ask an administrator of this installation for more"


def limits_by_workspace() -> dict[int | None, Limits]:
    """{workspace id: the limits set for it}. The key None has those set for the installation."""
    rows = Quota.objects.values_list("workspace_id", *NAMES)
    return {workspace_id: Limits(*values) for workspace_id, *values in rows}


def limits_of(workspace_id: int, known: Mapping[int | None, Limits] | None = None) -> Limits:
    """The limits that hold for a workspace. Pass `known`, the result of `limits_by_workspace`, if you ask for many."""
    known = limits_by_workspace() if known is None else known
    mine, default = asdict(known.get(workspace_id, Limits())), asdict(known.get(None, Limits()))
    return Limits(**{name: default[name] if mine[name] is None else mine[name] for name in NAMES})


@transaction.atomic
def change(administrator: User, workspace: Workspace | None, limits: Limits) -> None:
    """Sets the limits of a workspace, or, if None, of all that have no limits of their own. Raises Invalid at the field.

    The change is in the audit log of the workspace; a change for the installation is in those of the administrator's workspaces.
    """
    values = asdict(limits)
    wrong = {
        name: "must be 0 or more" for name, value in values.items() if value is not None and not 0 <= value <= MOST
    }
    if wrong:
        raise Invalid("These limits cannot be set.", wrong)
    row, _ = Quota.objects.update_or_create(workspace=workspace, defaults=values)
    mine = Workspace.objects.filter(pk__in=Membership.objects.filter(user=administrator).values("workspace_id"))
    for told in [workspace] if workspace else mine:
        audit.record(told, administrator, "quota.changed", row, whole=workspace is None, **values)


def lock_limits(workspace_id: int) -> None:
    """Locks the limits of the workspace until the transaction ends: nobody else can take from them meanwhile."""
    list(Workspace.objects.select_for_update(no_key=True).filter(pk=workspace_id).values_list("pk"))
