"""`manage.py signin EMAIL`: prints a link that signs this person in once; with `--new WORKSPACE` it makes the person."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_email
from django.db import transaction

from webapp.accounts.models import User
from webapp.accounts.sign_in.services import create_sign_in_link, get_or_create_user
from webapp.accounts.workspaces.services import create_workspace
from webapp.core.network.addresses import public_url
from webapp.core.problems import Invalid


class Command(BaseCommand):
    help = "Print a one-time sign-in link"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--new", metavar="WORKSPACE", help="create the account, as the owner of a new workspace")

    def handle(self, *args: Any, email: str, new: str | None, **options: Any) -> None:
        user = User.objects.filter(email=email.strip().lower()).first()
        if new is not None:
            user = _made(email, new, user)
        if user is None:
            raise CommandError(f"There is no account {email}. Give --new WORKSPACE to make it.")
        if not user.is_active:
            raise CommandError(f"The account {email} is closed.")
        self.stdout.write(f"{public_url()}/sign-in/link/{create_sign_in_link(user)}")


@transaction.atomic
def _made(email: str, workspace: str, before: User | None) -> User:
    if before and before.verified:
        raise CommandError(f"The account {email} already exists: leave out --new.")
    try:
        validate_email(email.strip())
        return create_workspace(workspace, get_or_create_user(email)).user
    except ValidationError as problem:
        raise CommandError(f"{email} is not an e-mail address.") from problem
    except Invalid as problem:
        raise CommandError(problem.message) from problem
