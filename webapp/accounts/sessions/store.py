"""Sessions in the database, read with a prepared statement, because every page and every request of a browser starts with that read.

`SignedIn` holds when a session began and when it was last used. A session opens nothing once it has been idle for too long, or too long
after it began, even if it is used: see `time_outs`. A request that a page sends by itself says so and does not count as use:
`static/js/attention.js`.
"""

from datetime import datetime
from typing import Any

from django.contrib.sessions.backends import db
from django.utils import timezone

from webapp.core.database import prepared

from ..models import SignedIn
from . import time_outs

READ = """
    SELECT session.session_data, known.created_at, known.last_used_at, asked.longest, asked.idle
    FROM django_session AS session LEFT JOIN accounts_signedin AS known USING (session_key)
    LEFT JOIN LATERAL (
        SELECT min(workspace.session_minutes) AS longest, min(workspace.idle_minutes) AS idle
        FROM accounts_membership AS membership JOIN accounts_workspace AS workspace ON workspace.id = membership.workspace_id
        WHERE membership.user_id = known.user_id
    ) AS asked ON true
    WHERE session_key = %s AND expire_date > %s
"""


class SessionStore(db.SessionStore):
    used_at: datetime | None = None  # when the session was last noted as used; None: nothing is known of it

    def load(self) -> dict[str, Any]:
        found = prepared.rows(READ, [self.session_key, timezone.now()])
        if found and not _over(*found[0][1:]):
            self.used_at = found[0][2]
            return self.decode(found[0][0])
        if found:  # idle for too long, or too old
            self.delete(self.session_key)
        self._session_key = None  # an unknown key is never used: the server did not make it
        return {}

    def cycle_key(self) -> None:
        """Changes the key of the session, and of what is known of it."""
        known = SignedIn.objects.filter(session_key=self.session_key or "").first()
        super().cycle_key()
        if known is not None:
            known.pk, known.session_key = None, self.session_key or ""
            known.save(force_insert=True)

    def delete(self, session_key: str | None = None) -> None:
        SignedIn.objects.filter(session_key=session_key or self.session_key or "").delete()
        super().delete(session_key)


def _over(began: datetime | None, used: datetime | None, longest: int | None, idle: int | None) -> bool:
    now, allowed = timezone.now(), time_outs.strictest(longest, idle)
    return bool((began and now - began > allowed.longest) or (used and now - used > allowed.idle))
