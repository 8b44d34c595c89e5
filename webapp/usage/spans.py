"""Records when attempts began and ended. The state machines of runs and jobs call this, in the transaction that changes the state.

Each function is one statement, and a repetition of it changes nothing: a unique constraint keeps one span for each attempt, and only a
span that is under way can end. The caller holds the lock of the row of the run or job, so two ends at once come one after the other, and
the first one counts.
"""

from datetime import datetime

from django.db.models import F, FloatField, Q, Value
from django.db.models.functions import Coalesce, Greatest, NullIf

from webapp.core.database import prepared

from .models import WorkKind, WorkSpan
from .works import PERSON, MeteredWork

_BEGIN = f"""
INSERT INTO usage_workspan (workspace_id, kind, work, attempt, place, person_id, began, gpus, told, measured)
VALUES (
    %(workspace)s::bigint, %(kind)s::text, %(work)s::bigint, %(attempt)s::integer, %(place)s::bigint, {PERSON}, %(began)s::timestamptz,
    %(gpus)s::float8, false, true
)
ON CONFLICT (kind, work, attempt) DO NOTHING
"""  # noqa: S608  built from constants


def begin(work: MeteredWork, attempt: int, at: datetime, gpus: float | None) -> None:
    """An attempt runs from `at` on. `gpus`: how many it holds; None if nobody knows. The same attempt twice begins once."""
    asked = {"workspace": work.workspace, "kind": str(work.kind), "work": work.id, "attempt": attempt}
    prepared.run(_BEGIN, asked | {"place": work.place, "person": work.person, "began": at, "gpus": gpus})


def end(kind: WorkKind, work: int, at: datetime, *, on_gpu: bool | None, gpus: float | None = None) -> bool:
    """Ends the spans of this work that are under way. Returns whether anything was.

    `on_gpu`: whether the process said that it computes on a GPU; None: it said nothing. Then what was known at its beginning remains. `gpus`
    counts if it had one and nobody knew how many.
    """
    asked = Q(kind=kind, work=work, ended=None, measured=True)
    fields: dict[str, object] = {"ended": Greatest(F("began"), Value(at))}  # where the clock went back
    if on_gpu is not None:
        held = NullIf(F("gpus"), Value(0.0, FloatField()))
        fields |= {"told": True, "gpus": Coalesce(held, Value(gpus, FloatField())) if on_gpu else 0.0}
    return bool(WorkSpan.objects.filter(asked).update(**fields))
