"""`manage.py signin EMAIL`: prints a link that signs this person in once."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.accounts import services
from webapp.accounts.models import User
from webapp.core.addresses import public_url


class Command(BaseCommand):
    help = "Print a one-time sign-in link"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(email=options["email"].strip().lower(), is_active=True).first()
        if user is None:
            raise CommandError(f"There is no account {options['email']}.")
        self.stdout.write(f"{public_url()}/sign-in/link/{services.create_sign_in_link(user)}")
