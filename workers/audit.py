"""The chain over the audit log continues, and what is sealed goes to another machine."""

from celery import shared_task
from django.conf import settings

from webapp.core.auditing import audit_chain, syslog


@shared_task(name="workers.audit.seal")
def seal() -> None:
    audit_chain.seal()
    if settings.AUDIT_SYSLOG:
        syslog.send(settings.AUDIT_SYSLOG)
