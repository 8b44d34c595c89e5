"""`manage.py restore BACKUP --into VAR`: an installation from a backup."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.backups import manifest, restoring
from webapp.backups.addresses import absolute_address
from webapp.backups.creation import mark_of
from webapp.backups.store import ENDING, open_store, passphrase_of
from webapp.core.problems import Problem


class Command(BaseCommand):
    help = "Create an installation from a backup, in an empty folder, and compare every row and file"
    requires_system_checks = []  # there need not be a database yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "backup",
            type=absolute_address,
            help=f"a folder or bucket of backups (the newest is restored), or one backup in it: NAME{ENDING}",
        )
        parser.add_argument("--into", type=Path, required=True, help="the new TOUCHSTONE_VAR: an empty folder")
        parser.add_argument("--database", help="the address of an empty database; an embedded Postgres if absent")
        parser.add_argument("--key-file", type=Path, default=settings.BACKUP_KEY_FILE)

    def handle(self, *args: Any, backup: str, into: Path, **options: Any) -> None:
        folder, _, one = backup.rpartition("/") if backup.endswith(ENDING) else (backup, "", "")
        if options["database"] and not options["database"].startswith(("postgresql://", "postgres://")):
            raise CommandError("--database names a server as postgresql://USER:PASSWORD@HOST:PORT/NAME.")
        try:
            store = open_store(folder, passphrase_of(options["key_file"]))
            name = one.removesuffix(ENDING) or manifest.newest(store)
            kept = manifest.read(store, name)
            self.stdout.write(
                f"{name}: {kept.rows:,} rows, {len(kept.files):,} files, made by Touchstone {kept.version}."
            )
            with store.reading():
                done = restoring.restore(store, kept, into, database=options["database"], say=self.stdout.write)
        except Problem as problem:
            raise CommandError(str(problem)) from problem
        for line in remarks(kept, into.resolve(), done.unreadable):
            self.stdout.write(line)
        start = f"TOUCHSTONE_VAR={into.resolve()} "
        if options["database"]:
            start += "DATABASE_URL=... "
        self.stdout.write(f"Restored and compared in {done.seconds:.1f} s. Start it: {start}manage.py up --no-demo")


def remarks(kept: manifest.Manifest, into: Path, unreadable: int) -> list[str]:
    """Remarks for the person who restores."""
    said = [f"Not in the backup, because it is stored elsewhere: {path}" for path in kept.elsewhere]
    said += [f"Not in the backup, because it did not exist any more: {path}" for path in kept.lost]
    if mark_of((into / "secret_key").read_text()) != kept.key_mark:
        said.append(
            "secret_key is not the former one: everybody must sign in again, and keys of endpoints and secrets of webhooks must be "
            "entered again. If you still have the former key, put it there before you start."
        )
    elif unreadable:
        said.append(
            f"{unreadable:,} stored secrets (keys of endpoints, secrets of webhooks, second factors) cannot be decrypted with any "
            "known key: put the former key into SECRET_KEY_FALLBACKS and run manage.py reencrypt, or enter the secrets again."
        )
    return said
