"""Queue of backups. Tasks may arrive twice; `webapp.backups.services` copes."""

from celery import shared_task
from django.conf import settings

from webapp.backups import drill as drills
from webapp.backups import services


@shared_task(name="workers.backups.make")
def make(pk: int) -> None:
    services.carry_out(pk, settings.BACKUP_KEY_FILE)


@shared_task(name="workers.backups.drill")
def drill(pk: int) -> None:
    drills.carry_out(pk, settings.BACKUP_KEY_FILE)


@shared_task(name="workers.backups.round")
def look() -> None:
    services.look()
