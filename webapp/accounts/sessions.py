"""Sessions in the database, read with a prepared statement: every page and every request of a browser begins with it."""

from typing import Any

from django.contrib.sessions.backends import db
from django.utils import timezone

from webapp.core import prepared

READ = "SELECT session_data FROM django_session WHERE session_key = %s AND expire_date > %s"


class SessionStore(db.SessionStore):
    def load(self) -> dict[str, Any]:
        found = prepared.rows(READ, [self.session_key, timezone.now()])
        if found:
            return self.decode(found[0][0])
        self._session_key = None  # an unknown key is not taken over: whoever sent it did not get it from us
        return {}
