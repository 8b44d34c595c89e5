"""`manage.py token EMAIL`: prints a new API token and nothing else, so that scripts can capture it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.accounts import areas
from webapp.accounts.models import Membership
from webapp.accounts.tokens import services
from webapp.core.problems import Invalid


class Command(BaseCommand):
    help = "Print a new API token for someone"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--workspace", help="slug of the workspace; needed only for people in several workspaces")
        parser.add_argument("--scope", choices=list(areas.Right), default=areas.Right.WRITE.value)
        parser.add_argument(
            "--area",
            action="append",
            metavar="AREA:RIGHT",
            help=f"one area, such as datasets:read, instead of all; may be repeated; the areas are {', '.join(areas.Area)}",
        )
        parser.add_argument("--name", default="command line")
        parser.add_argument(
            "--days",
            type=int,
            default=services.TOKEN_DAYS,
            help="days until the token expires; 0: it is valid until it is revoked",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        membership = _membership(options["email"], options["workspace"])
        try:
            days = options["days"] or None
            _, secret = services.create_token(membership, options["name"], options["scope"], days, _rights(options))
        except Invalid as problem:
            why = "; ".join(f"{path}: {words}" for path, words in problem.fields.items())
            raise CommandError(f"{problem.message} {why}".strip()) from problem
        self.stdout.write(secret)


def _rights(options: dict[str, Any]) -> dict[str, str] | None:
    if not options["area"]:
        return None
    named = [each.partition(":") for each in options["area"]]
    return {area: right or str(areas.Right.READ) for area, _, right in named}


def _membership(email: str, slug: str | None) -> Membership:
    found = Membership.objects.filter(user__email=email.strip().lower()).select_related("user", "workspace")
    if slug:
        found = found.filter(workspace__slug=slug)
    memberships = list(found.order_by("id"))
    if not memberships:
        raise CommandError(f"{email} is not a member of {f'workspace {slug!r}' if slug else 'any workspace'}.")
    if len(memberships) > 1:
        slugs = ", ".join(m.workspace.slug for m in memberships)
        raise CommandError(f"{email} belongs to several workspaces; choose one with --workspace: {slugs}")
    return memberships[0]
