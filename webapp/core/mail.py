"""Mail, where MAIL_URL names a server that takes it. The product does without: see `configured`."""

import smtplib

from django.conf import settings
from django.core.mail import EmailMessage

from .problems import Problem


class NotSent(Problem):
    """The mail server did not take the mail (502)."""

    def __init__(self, why: object) -> None:
        super().__init__(f"The mail could not be sent: {why}", code="mail_failed", status=502)


def configured() -> bool:
    return bool(settings.MAIL_URL)


def send(to: str, subject: str, text: str) -> None:
    """Returns when the mail server has taken the mail. Raises NotSent, so that the caller's transaction is undone."""
    message = EmailMessage(subject, text, settings.DEFAULT_FROM_EMAIL, [to])
    try:
        message.send()
    except (smtplib.SMTPException, OSError) as error:
        raise NotSent(error) from error
