"""The chain over the audit log goes on."""

from celery import shared_task

from webapp.core import audit_chain


@shared_task(name="workers.audit.seal")
def seal() -> None:
    audit_chain.seal()
