"""`manage.py migrate`: Django's own, in about half the time."""

from typing import Any

from django.core.management.commands import migrate

from webapp.core.database.migration_states import fast


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with fast():
            super().handle(*args, **options)
