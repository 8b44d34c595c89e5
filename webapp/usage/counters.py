"""The use of endpoints by calls, month by month.

A counter is a row that many transactions add to. So it comes after all other rows that several workers may want: the row of a job, verdicts,
troubles of endpoints, judges of runs, questions. A transaction that holds a counter then waits for nobody who waits for the counter. `count`
adds to one counter with one statement; a transaction that counts for several calls it in the order of `MeteredWork.kind`, `MeteredWork.id`
and the endpoint's id.

What is counted is in the transaction that stores the answers. A worker that is killed before it commits has stored and counted nothing,
and a message that is delivered twice stores nothing the second time and must count nothing then: its caller sees to it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from django.utils import timezone

from webapp.core.database import prepared

from .works import PERSON, MeteredWork

_COUNT = f"""
INSERT INTO usage_monthlyuse AS old (
    workspace_id, month, kind, work, place, person_id, endpoint_id, calls, prompt_tokens, completion_tokens, other_tokens, money,
    untold, unpriced
)
VALUES (
    %(workspace)s::bigint, %(month)s::date, %(kind)s::text, %(work)s::bigint, %(place)s::bigint, {PERSON}, %(endpoint)s::bigint,
    %(calls)s::bigint, %(prompt)s::bigint, %(completion)s::bigint, 0, %(money)s::numeric, %(untold)s::bigint, %(unpriced)s::bigint
)
ON CONFLICT (kind, work, endpoint_id, month) DO UPDATE SET
    calls = old.calls + EXCLUDED.calls, prompt_tokens = old.prompt_tokens + EXCLUDED.prompt_tokens,
    completion_tokens = old.completion_tokens + EXCLUDED.completion_tokens, money = old.money + EXCLUDED.money,
    untold = old.untold + EXCLUDED.untold, unpriced = old.unpriced + EXCLUDED.unpriced,
    person_id = coalesce(old.person_id, EXCLUDED.person_id)
"""  # noqa: S608  built from constants


@dataclass(frozen=True)
class CallUse:
    """The usage of answered calls. `untold` of them did not say how many tokens, `unpriced` of them have no price; the sums leave those
    out. Money is in the unit of the endpoint's prices."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: Decimal = Decimal(0)
    untold: int = 0
    unpriced: int = 0


def count(work: MeteredWork, endpoint: int, use: CallUse, at: datetime | None = None) -> None:
    """Adds to the counter of this work, this endpoint and the month of `at`, or of now."""
    if not use.calls:
        return
    asked = {"workspace": work.workspace, "kind": str(work.kind), "work": work.id, "place": work.place}
    used = {"calls": use.calls, "prompt": use.prompt_tokens, "completion": use.completion_tokens, "money": use.money}
    rest = {"untold": use.untold, "unpriced": use.unpriced, "person": work.person, "endpoint": endpoint}
    month = (at or timezone.now()).astimezone(UTC).date().replace(day=1)
    prepared.run(_COUNT, asked | used | rest | {"month": month})
