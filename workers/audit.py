"""The chain over the audit log continues, and what is sealed goes to another machine."""

from celery import shared_task
from django.conf import settings

from webapp.core.auditing import chain, syslog


@shared_task(name="workers.audit.seal")
def seal() -> None:
    chain.seal()
    if settings.AUDIT_SYSLOG:
        syslog.send(settings.AUDIT_SYSLOG)
