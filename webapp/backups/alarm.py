"""Tells administrators by mail that a backup or a drill has failed. The page and `/metrics` show it as well, without a mail server."""

import logging

from webapp.accounts.models import User
from webapp.core.network import mail

logger = logging.getLogger(__name__)


def alert_administrators(subject: str, text: str) -> None:
    """Writes to every administrator if there is a mail server, and to the log in any case. A mail that is not sent changes nothing."""
    logger.error("%s: %s", subject, text)
    if not mail.is_configured():
        return
    for address in User.objects.filter(is_administrator=True, is_active=True).values_list("email", flat=True):
        try:
            mail.send(address, f"Touchstone: {subject}", f"{text}\n\nSettings, Installation, Backups has more.")
        except mail.NotSent as error:
            logger.error("an administrator was not told: %s", error)
