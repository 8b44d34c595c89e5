"""`manage.py audit_verify`: whether the audit log is what was written, by its hash chain."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.core.auditing import chain


class Command(BaseCommand):
    help = "Seal new entries, check whether the audit log was changed, and print the last digest of its chain"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--expect", help="a digest printed earlier, which must still be part of the chain")

    def handle(self, *args: Any, expect: str | None, **options: Any) -> None:
        chain.seal()
        found = chain.verify()
        if found.problems:
            raise CommandError("The audit log was changed: " + "; ".join(found.problems))
        if expect and not chain.holds(expect):
            raise CommandError(
                f"The digest {expect} is not part of the chain: the end of the log was cut off, or this is another log."
            )
        self.stdout.write(f"{found.sealed} entries, unchanged. Last digest: {found.head}")
