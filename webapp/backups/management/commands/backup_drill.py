"""`manage.py backup_drill [FOLDER]`: tests whether the newest backup can be restored."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.backups import drill
from webapp.backups.addresses import absolute_address
from webapp.backups.models import Origin
from webapp.core.problems import Problem


class Command(BaseCommand):
    help = "Restore the newest backup beside the installation, compare every row and file, open pages, and remove the copy again"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "folder", type=absolute_address, nargs="?", default=settings.BACKUP_FOLDER, help="default: BACKUP_FOLDER"
        )
        parser.add_argument("--key-file", type=Path, default=settings.BACKUP_KEY_FILE)

    def handle(self, *args: Any, folder: str | None, key_file: Path | None, **options: Any) -> None:
        if folder is None:
            raise CommandError("Name a folder, or set BACKUP_FOLDER.")
        try:
            done = drill.start(folder, Origin.COMMAND)
        except Problem as problem:
            raise CommandError(str(problem)) from problem
        drill.carry_out(done.pk, key_file, self.stdout.write)
        done.refresh_from_db()
        if not done.passed:
            raise CommandError(f"The drill failed after {done.seconds or 0:.1f} s: {done.problem}")
        self.stdout.write(
            f"{done.name} is good: {done.rows or 0:,} rows and {done.files or 0:,} files came back; {done.seconds or 0:.1f} s."
        )
