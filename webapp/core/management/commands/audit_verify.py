"""`manage.py audit_verify`: whether the audit log is what was written, by its hash chain."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.core import audit_chain


class Command(BaseCommand):
    help = "Seal what is not sealed yet, read the whole audit log and say whether it was changed; prints the chain's last digest"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--expect", help="a digest printed earlier, which must be part of the chain still")

    def handle(self, *args: Any, expect: str | None, **options: Any) -> None:
        audit_chain.seal()
        found = audit_chain.verify()
        if found.problems:
            raise CommandError("The audit log was changed: " + "; ".join(found.problems))
        if expect and not audit_chain.holds(expect):
            raise CommandError(
                f"The digest {expect} is not part of the chain: its end was cut off, or it is another log."
            )
        self.stdout.write(f"{found.sealed} entries, unchanged. Last digest: {found.head}")
