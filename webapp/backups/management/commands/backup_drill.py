"""`manage.py backup_drill [FOLDER]`: is the newest backup worth something?"""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.backups import drill
from webapp.backups.places import where
from webapp.backups.store import open_store, passphrase_of
from webapp.core.problems import Problem


class Command(BaseCommand):
    help = (
        "Restore the newest backup beside the installation, compare every row and file, open pages, and remove it again"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "folder", type=where, nargs="?", default=settings.BACKUP_FOLDER, help="or a bucket; BACKUP_FOLDER if absent"
        )
        parser.add_argument("--key-file", type=Path, default=settings.BACKUP_KEY_FILE)

    def handle(self, *args: Any, folder: str | None, key_file: Path | None, **options: Any) -> None:
        if folder is None:
            raise CommandError("Name a folder, or set BACKUP_FOLDER.")
        try:
            done = drill.run(open_store(folder, passphrase_of(key_file)), self.stdout.write)
        except Problem as problem:
            raise CommandError(str(problem)) from problem
        if not done.passed:
            raise CommandError(f"The drill failed after {done.seconds:.1f} s: {done.problem}")
        self.stdout.write(
            f"{done.name} is good: {done.rows or 0:,} rows and {done.files or 0:,} files came back; {done.seconds:.1f} s."
        )
