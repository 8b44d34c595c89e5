"""`manage.py second_factor EMAIL`: for people who lost their phone and their recovery codes."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.accounts.models import User
from webapp.identity import second_factor


class Command(BaseCommand):
    help = "Remove the second factors of a person. The person then signs in without one and can set up another."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(email=options["email"].strip().lower()).first()
        if user is None:
            raise CommandError(f"There is no account {options['email']}.")
        if second_factor.remove_second_factors(user):
            self.stdout.write(f"{user.email} has no second factor any more.")
        else:
            self.stdout.write(f"{user.email} had no second factor.")
