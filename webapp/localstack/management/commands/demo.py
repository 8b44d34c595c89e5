"""`manage.py demo`: the demo workspace, its data, its model and its run. Doing it again changes nothing."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from webapp.accounts import services as accounts
from webapp.accounts.models import Membership
from webapp.core.addresses import public_url

EMAIL = "demo@localhost"
WORKSPACE = "Demo"


class Command(BaseCommand):
    help = "Load the demo and start its run"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--link", action="store_true", help="only make the owner and print a sign-in link")

    def handle(self, *args: Any, **options: Any) -> None:
        membership = owner()
        if options["link"]:
            secret = accounts.create_sign_in_link(membership.user)
            self.stdout.write(f"{public_url()}/sign-in/link/{secret}")
            return


def owner() -> Membership:
    """The demo's owner in the demo's workspace, made once."""
    user = accounts.get_or_create_user(EMAIL, name="Demo")
    found = Membership.objects.filter(user=user, workspace__slug="demo").select_related("user", "workspace").first()
    return found or accounts.create_workspace(WORKSPACE, user)
