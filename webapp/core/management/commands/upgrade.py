"""`manage.py upgrade`: applies what migrations wait, then looks whether the database is what the code expects."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.core.database import schema
from webapp.version import VERSION


class Command(BaseCommand):
    help = "Bring the database to the schema of this version, and check the result"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="only look; apply nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["check"]:
            call_command("migrate", interactive=False, verbosity=options["verbosity"])
        if found := schema.differences():
            listed = "\n".join(f"  {each}" for each in found)
            raise CommandError(
                f"The database is not what Touchstone {VERSION} expects:\n{listed}\n"
                "No service was started. docs/upgrading.md says what to do."
            )
        self.stdout.write(f"The database is what Touchstone {VERSION} expects.")
