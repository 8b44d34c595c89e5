"""`manage.py import_verdicts FILE` reads verdicts that judges gave elsewhere, and prints what they say about them as JSON."""

from argparse import ArgumentParser
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from webapp.accounts.models import Membership
from webapp.accounts.workspaces.owners import acting_owner
from webapp.core.commands import JsonCommand
from webapp.core.problems import Problem
from webapp.core.text.jsonlines import Problems, as_json_text
from webapp.datasets.models import DatasetVersion
from webapp.files.bundle import Bundle
from webapp.judging.recorded.formats.base import Record, RecordedPair, RowProblem
from webapp.judging.recorded.formats.registry import REGISTRY, UnknownFormat, detect, read
from webapp.judging.recorded.report import report
from webapp.judging.recorded.services import keep_recorded

AUTO = "auto"


class Command(JsonCommand):
    requires_system_checks = []  # reads a file, nothing else
    help = "Reads recorded verdicts (a file, folder or zip archive) and prints one JSON object. " + "; ".join(
        f"{each.name}: {each.help}" for each in REGISTRY.values()
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--format", choices=[AUTO, *REGISTRY], default=AUTO)
        parser.add_argument("--dataset", help="store the verdicts, for the pairs of this dataset's newest version")
        parser.add_argument("--keep-good", action="store_true", help="list bad lines on stderr, and use the others")
        parser.add_argument(
            "--workspace", help="slug of the workspace; needed only with --dataset, if there are several"
        )

    def handle(self, *args: Any, file: Path, format: str, dataset: str | None, **options: Any) -> None:
        data = _newest(owner := acting_owner(options["workspace"]), dataset) if dataset else None
        seen = _Seen(file)
        try:
            chosen = detect(Bundle(file)) if format == AUTO else REGISTRY[format]
            found = report(seen.records(read(file, chosen)))
            seen.settle(self.stderr if options["keep_good"] else None)
            bad = {"bad_lines": seen.problems.count} if options["keep_good"] else {}
            told = {"format": chosen.name, "files": len(seen.files), "records": seen.count, **bad, **found}
            if data is not None:  # from a second reading: the first has to end before anything is kept
                told["kept"] = _keep(owner, data, seen.records(read(file, chosen)), seen.both)
        except UnknownFormat as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{file}: cannot be read: {error.strerror or error}") from error
        self.stdout.write(as_json_text(told))


def _newest(owner: Membership, name: str) -> DatasetVersion:
    found = DatasetVersion.objects.filter(dataset__workspace=owner.workspace, dataset__name=name).order_by("-number")
    if (version := found.first()) is None:
        raise CommandError(f"There is no dataset {name!r} in workspace {owner.workspace.slug!r}.")
    return version


def _keep(owner: Membership, data: DatasetVersion, records: Iterator[Record], both: set[str]) -> list[dict[str, Any]]:
    try:
        kept = keep_recorded(owner, data, (each for each in records if isinstance(each, RecordedPair)), both)
    except Problem as problem:
        fields = "; ".join(f"{field}: {reason}" for field, reason in problem.fields.items())
        raise CommandError(f"{problem.message} {fields}".strip()) from problem
    return [
        {
            "judge": each.judge,
            "version": each.version and each.version.pk,
            "pairs": each.pairs,
            "unmatched": each.unmatched,
            "doubled": each.doubled,
            **{name: getattr(each.counts, name) for name in ("total", "stored", "done", "missing", "failed")},
        }
        for each in kept
    ]


class _Seen:
    """Lets good records through and remembers the bad ones: nothing is printed from a file that is half understood.

    Some 200 bytes of a record stay in memory, which find what is said twice; its texts do not stay. A second reading lets the
    same records through.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.files: dict[str, int] = {}
        self.problems = Problems()
        self.both: set[str] = set()  # judges that were asked in both orders
        self._places: dict[bytes, tuple[int, int]] = {}  # what was said -> file and line; 16 bytes stand for the names

    def records(self, given: Iterator[tuple[str, int, Record | RowProblem]]) -> Iterator[Record]:
        for name, line, record in given:
            place = (self.files.setdefault(name, len(self.files)), line)
            where = f"{name}, line {line}"
            if isinstance(record, RowProblem):
                self.problems.add(where, f"{f'field {record.field!r}: ' if record.field else ''}{record.reason}")
                continue
            before = self._places.setdefault(_identity(record), place)
            if before != place:
                self.problems.add(where, f"repeats {list(self.files)[before[0]]}, line {before[1]}")
                continue
            self.count += 1
            if isinstance(record, RecordedPair) and record.orders == "both":
                self.both.add(record.judge)
            yield record

    def settle(self, told_on: OutputWrapper | None) -> None:
        """Raises CommandError naming every problem by file and line; if they are `told_on` instead, only for no record."""
        self.problems.settle(told_on)
        if not self.count:
            raise CommandError(f"{self.path}: holds no verdicts")


def _identity(record: Record) -> bytes:
    if isinstance(record, RecordedPair):
        names = [record.judge, record.collection, record.group, record.pair]
    else:
        names = [record.judge, record.tree]
    return blake2b("\0".join(names).encode("utf-8", "surrogatepass"), digest_size=16).digest()
