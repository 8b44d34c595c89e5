"""`manage.py admin EMAIL`: makes a person an administrator of the installation, or lets them create workspaces."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.accounts.administration import services
from webapp.accounts.models import User
from webapp.core.problems import Conflict


class Command(BaseCommand):
    help = "Set who administers this installation and who may create workspaces; without EMAIL, list those people"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", nargs="?")
        parser.add_argument("--workspaces", action="store_true", help="only the right to create workspaces")
        parser.add_argument("--revoke", action="store_true", help="remove the right")

    def handle(self, *args: Any, email: str | None, workspaces: bool, revoke: bool, **options: Any) -> None:
        if email is None:
            for person in services.with_rights():
                self.stdout.write(
                    f"{person.email}\t{'administrator' if person.is_administrator else 'creates workspaces'}"
                )
            return
        user = User.objects.filter(email=email.strip().lower()).first()
        if user is None:
            raise CommandError(f"There is no account {email}.")
        try:
            if workspaces:
                services.allow_workspaces(user, not revoke)
            else:
                services.make_administrator(user, not revoke)
        except Conflict as problem:
            raise CommandError(problem.message) from problem
