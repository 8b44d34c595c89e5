"""`manage.py import_dataset FILE --name NAME`: imports a file here and now, and prints one JSON object."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from webapp.accounts.workspaces.owners import acting_owner
from webapp.core.commands import JsonCommand
from webapp.core.problems import Conflict, Invalid
from webapp.core.text.jsonlines import as_json_text
from webapp.datasets import queries
from webapp.datasets.formats.importers import REGISTRY
from webapp.datasets.ingest import services
from webapp.datasets.ingest.inspection import AUTO
from webapp.datasets.models import ImportJob


class Command(JsonCommand):
    help = "Import a file as a dataset version; the exit status is 1 if the file is refused"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="a file, a ZIP archive or a folder of files of one format")
        parser.add_argument("--name", required=True, help="the dataset's name; an existing one gets a new version")
        parser.add_argument("--format", choices=[AUTO, *REGISTRY], default=AUTO)
        parser.add_argument("--map", action="append", default=[], metavar="FIELD=COLUMN", help="for format table")
        parser.add_argument("--keep-good", action="store_true", help="if the file has bad lines, import the good ones")
        parser.add_argument(
            "--heldout-share", type=float, help="share of the examples without a split that is held out"
        )
        parser.add_argument(
            "--group-by",
            default="",
            metavar="FIELD",
            help="keep examples with the same value on one side of the split: domain, source or meta.NAME",
        )
        parser.add_argument("--workspace", help="slug of the workspace; needed only if there are several")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["file"].exists():
            raise CommandError(f"{options['file']}: there is no such file or folder.")
        owner = acting_owner(options["workspace"])
        try:
            job = services.start_import(
                owner,
                options["file"],
                name=options["name"],
                format=options["format"],
                mapping=dict(_pair(text) for text in options["map"]),
                keep_good=options["keep_good"],
                heldout_share=options["heldout_share"],
                group_by=options["group_by"],
                queue=False,
            )
        except Invalid as problem:
            fields = "; ".join(f"{field}: {reason}" for field, reason in problem.fields.items())
            raise CommandError(f"{problem.message} {fields}") from problem
        try:
            services.run_import(job.pk)
        except KeyboardInterrupt:
            with suppress(Conflict):  # it ended in the same moment
                services.cancel_import(owner, job)
                services.run_import(job.pk)
        job = ImportJob.objects.select_related("version").get(pk=job.pk)
        self.stdout.write(as_json_text(queries.import_report(job)))
        if job.state != ImportJob.State.FINISHED:
            sys.exit(1)

    def refused(self, error: str, options: dict[str, Any]) -> dict[str, Any]:
        return queries.never_begun(options["name"], options["format"], error)


def _pair(text: str) -> tuple[str, str]:
    field, _, column = text.partition("=")
    if not column:
        raise CommandError(f"--map {text}: write FIELD=COLUMN, such as prompt=question.")
    return field, column
