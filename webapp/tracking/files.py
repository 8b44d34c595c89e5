"""Files that a program sends along with a run that it logs: below the run's folder, or in the artifact store if there is one."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from django.db import transaction
from django.db.models import Sum
from django.http import Http404

from trainer.contracts import ModelFile
from webapp.accounts.administration import quotas
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.core.storage import artifact_store
from webapp.core.storage.archive import Download
from webapp.experiments.models import Artifact, Run
from webapp.experiments.outputs import artifacts

from .models import LoggedRun
from .services import note_sign_of_life

FILE = "file"
"""The role of such an artifact."""
FOLDER = "files/"
LONGEST = 400  # characters of a path
LONGEST_PART = 200  # bytes of a part, which file systems limit
MOST = 10_000  # files of one run
PIECE = 1 << 20


class ListedFile(NamedTuple):
    """A file or a folder in a list of files. `bytes` is None for a folder."""

    path: str
    bytes: int | None


def checked(path: str) -> str:
    """A path below the run's files. Raises Invalid."""
    parts = PurePosixPath(path).parts
    plain = path and not path.startswith("/") and "\\" not in path and path.isprintable()
    if (
        not plain
        or any(part in (".", "..") or len(part.encode()) > LONGEST_PART for part in parts)
        or len(path) > LONGEST
    ):
        why = f"names a file below the run, in at most {LONGEST} characters, without .. and control characters"
        raise Invalid("This path cannot be used.", {"path": why})
    return "/".join(parts)


def keep(membership: Membership, row: LoggedRun, path: str, content: IO[bytes]) -> Artifact:
    """Stores a file whole or not at all; sent again, it replaces the one before. Raises Invalid, Conflict, OverQuota, StoreAway."""
    path = checked(path)
    with _received(row.run_id, content) as (folder, file), transaction.atomic():
        quotas.lock_limits(membership.workspace_id)
        run = Run.objects.with_names().select_for_update(of=("self",), no_key=True).filter(pk=row.run_id).first()
        if run is None or LoggedRun.objects.filter(pk=row.pk).exclude(deleted_at=None).exists():
            raise Conflict("This run is deleted; restore it first.", "deleted")
        note_sign_of_life(row, run)
        _check_place(run, path)
        _check_quota(membership.workspace_id, run, path, file.bytes)
        artifact = Artifact(run=run, path=FOLDER + path)
        stored = [file.model_dump()] if artifact_store.is_configured() else []
        if stored:
            artifact_store.keep(artifacts.place(artifact), folder, [file])
        else:
            target = artifacts.folder(run.pk) / FOLDER / path
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(folder / file.path, target)
        facts = {"step": run.step, "role": FILE, "bytes": file.bytes, "digest": file.digest, "files": stored}
        artifact, _ = Artifact.objects.update_or_create(run=run, path=artifact.path, defaults=facts)
        return artifact


@contextmanager
def _received(run_id: int, content: IO[bytes]) -> Iterator[tuple[Path, ModelFile]]:
    """Writes the file to a folder of its own beside its place, so that one step moves it there. Its name is not yet the one that the program
    gave it, which may have any letters."""
    home = artifacts.folder(run_id)
    home.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".received.", dir=home))
    try:
        digest, size = hashlib.sha256(), 0
        with (folder / artifacts.ONE).open("wb") as out:
            while piece := content.read(PIECE):
                digest.update(piece)
                size += len(piece)
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        yield folder, ModelFile(path=artifacts.ONE, bytes=size, digest=digest.hexdigest())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_place(run: Run, path: str) -> None:
    """Refuses a path that would be a file and a folder at once, and one file too many. Raises Invalid at `path`."""
    above = [FOLDER + str(each) for each in PurePosixPath(path).parents if str(each) != "."]
    mine = Artifact.objects.filter(run=run, role=FILE)
    if mine.filter(path__in=above).exists() or mine.filter(path__startswith=f"{FOLDER}{path}/").exists():
        raise Invalid("This path cannot be used.", {"path": "a file and a folder cannot have one name"})
    if mine.count() >= MOST and not mine.filter(path=FOLDER + path).exists():
        raise Invalid("There are too many files.", {"path": f"a run has at most {MOST:,}"})


def stored_bytes(workspace_id: int) -> int:
    """Bytes of all files that programs sent for runs of the workspace."""
    mine = Artifact.objects.filter(role=FILE, run__experiment__workspace_id=workspace_id)
    return mine.aggregate(bytes=Sum("bytes"))["bytes"] or 0


def _check_quota(workspace_id: int, run: Run, path: str, size: int) -> None:
    limit = quotas.limits_of(workspace_id).logged_bytes
    if limit is None:
        return
    before = Artifact.objects.filter(run=run, path=FOLDER + path).values_list("bytes", flat=True).first() or 0
    left = limit - stored_bytes(workspace_id) + before
    if size > left:
        reason = f"has {size:,} bytes; of {limit:,} for files of logged runs {max(left, 0):,} are left"
        raise quotas.OverQuota("This workspace has no room for the file.", {"path": reason})


def listed(row: LoggedRun, path: str) -> list[ListedFile]:
    """The files and folders directly below a folder."""
    folder = FOLDER + (checked(path) + "/" if path.strip("/") else "")
    mine = Artifact.objects.filter(run_id=row.run_id, role=FILE)
    found: dict[str, int | None] = {}
    for full, size in mine.filter(path__startswith=folder).order_by("path").values_list("path", "bytes"):
        name, _, below = full.removeprefix(folder).partition("/")
        found[name] = None if below else size
    return [ListedFile(name, size) for name, size in found.items()]


def file(row: LoggedRun, path: str) -> Artifact:
    """The artifact of a file of the run. Raises Http404."""
    rows = Artifact.objects.select_related("run__experiment").filter(run_id=row.run_id, role=FILE)
    found = rows.filter(path=FOLDER + checked(path)).first()
    if found is None:
        raise Http404("no such file")
    return found


def download(membership: Membership, row: LoggedRun, path: str) -> Download:
    """A file of the run as a download, which the audit log notes. Raises Http404, Gone."""
    artifact = file(row, path)
    found = artifacts.download(artifact)
    audit.record(membership, membership.user, "artifact.downloaded", artifact, run=row.run_id)
    return found
