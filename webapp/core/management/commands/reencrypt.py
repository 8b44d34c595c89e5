"""`manage.py reencrypt`: seals stored secrets (keys of endpoints and webhooks, second factors) under the present SECRET_KEY."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.core import sealed


class Command(BaseCommand):
    help = "Seal stored secrets under the present SECRET_KEY; what former keys open is named in SECRET_KEY_FALLBACKS"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="only count; change nothing")

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        lost = waiting = 0
        for column in sealed.reseal(change=not check):
            done = "under former keys" if check else "sealed anew"
            self.stdout.write(
                f"{column.column}: {column.former} {done}, {column.current} under the present key already, "
                f"{column.unreadable} open under no key given"
            )
            lost, waiting = lost + column.unreadable, waiting + (column.former if check else 0)
        if lost:
            raise CommandError(
                f"{lost} secrets open under no key given: name the key they were sealed with in SECRET_KEY_FALLBACKS, "
                "or enter them again."
            )
        if not waiting:
            self.stdout.write("Former keys open nothing that is needed: SECRET_KEY_FALLBACKS may be emptied.")
