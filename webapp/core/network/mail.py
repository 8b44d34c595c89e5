"""Mail, if MAIL_URL names a server. The product works without: see `is_configured`."""

import smtplib
from collections.abc import Mapping

from django.conf import settings
from django.core.mail import EmailMessage

from ..problems import Problem


class NotSent(Problem):
    """The mail server did not take the mail (502). `for_good`: it never will take mail for this address."""

    def __init__(self, why: object, *, for_good: bool = False) -> None:
        self.for_good = for_good
        super().__init__(f"The mail could not be sent: {why}", code="mail_failed", status=502)


def is_configured() -> bool:
    return bool(settings.MAIL_URL)


def send(to: str, subject: str, text: str, headers: Mapping[str, str] | None = None) -> None:
    """Returns when the mail server has taken the mail. Raises NotSent, so that the caller's transaction is undone."""
    message = EmailMessage(subject, text, settings.DEFAULT_FROM_EMAIL, [to], headers=dict(headers or {}))
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        raise NotSent(error, for_good=all(code >= 500 for code in codes)) from error
    except (smtplib.SMTPException, OSError) as error:
        raise NotSent(error) from error
