"""`manage.py backup [FOLDER]`: a backup here and now, while the product runs."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.backups import services
from webapp.backups.addresses import absolute_address
from webapp.backups.models import Backup, Origin
from webapp.core.problems import Problem


class Command(BaseCommand):
    help = "Copy the database and all its files, as they are at one moment, to a folder or a bucket"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "folder", type=absolute_address, nargs="?", default=settings.BACKUP_FOLDER, help="default: BACKUP_FOLDER"
        )
        parser.add_argument(
            "--key-file",
            type=Path,
            default=settings.BACKUP_KEY_FILE,
            help="file with the passphrase that encrypts the backup",
        )

        parser.add_argument(
            "--keep-daily",
            type=int,
            help="afterwards keep only the last backup of each of this many days (and weeks), and remove the others",
        )
        parser.add_argument(
            "--keep-weekly",
            type=int,
            default=0,
            help="with --keep-daily: also keep the last backup of each of this many weeks",
        )

    def handle(self, *args: Any, folder: str | None, key_file: Path | None, **options: Any) -> None:
        if folder is None:
            raise CommandError("Name a folder, or set BACKUP_FOLDER.")
        try:
            backup = services.start(folder, Origin.COMMAND)
            services.carry_out(backup.pk, key_file)
        except Problem as problem:
            raise CommandError(str(problem)) from problem
        backup.refresh_from_db()
        if backup.state != Backup.State.FINISHED:
            raise CommandError(backup.problem or f"The backup is {backup.state}.")
        self.stdout.write(
            f"{backup.name}: {backup.rows:,} rows and {backup.files:,} files, {backup.size or 0:,} bytes, "
            f"{backup.added or 0:,} of them new in {folder}; {backup.seconds or 0:.1f} s."
        )
        if options["keep_daily"]:
            try:
                gone = services.prune(folder, key_file, options["keep_daily"], options["keep_weekly"])
            except Problem as problem:
                raise CommandError(f"Older backups could not be removed: {problem}") from problem
            self.stdout.write(f"Removed: {', '.join(gone) or 'nothing'}")
        for line in services.remarks(folder, key_file, backup.name):
            self.stdout.write(line)
