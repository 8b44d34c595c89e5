"""`manage.py migrate`: Django's own, in about half the time."""

from typing import Any

from django.core.management.commands import migrate

from webapp.core.migration_states import copied_fields


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with copied_fields():
            super().handle(*args, **options)
