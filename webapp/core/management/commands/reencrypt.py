"""`manage.py reencrypt`: seals stored secrets (keys of endpoints and webhooks, second factors) under the present SECRET_KEY."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.core import encryption


class Command(BaseCommand):
    help = "Encrypt stored secrets with the present SECRET_KEY; the former keys are those in SECRET_KEY_FALLBACKS"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="only count; change nothing")

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        lost = waiting = 0
        for column in encryption.encrypt_again(change=not check):
            done = "under former keys" if check else "encrypted again"
            self.stdout.write(
                f"{column.column}: {column.former} {done}, {column.current} already under the present key, {column.unreadable} that "
                "no given key decrypts"
            )
            lost, waiting = lost + column.unreadable, waiting + (column.former if check else 0)
        if lost:
            raise CommandError(
                f"No given key decrypts {lost} secrets: put the key that encrypted them into SECRET_KEY_FALLBACKS, or enter them again."
            )
        if not waiting:
            self.stdout.write("The former keys are not needed any more: you can empty SECRET_KEY_FALLBACKS.")
