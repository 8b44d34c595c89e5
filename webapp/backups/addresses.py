"""Reads the address of a place of backups."""

from pathlib import Path

from webapp.core.network.destinations import DestinationRefused

from .places import BackupPlace, FolderPlace
from .problems import BackupProblem


def absolute_address(text: str | Path) -> str:
    """The same place in a form that does not depend on the present folder."""
    return text.rstrip("/") if isinstance(text, str) and "://" in text else str(Path(text).resolve())


def parse_address(where: str | Path) -> BackupPlace:
    """A folder, or a bucket by its address: s3://BUCKET/FOLDER, gs://..., az://ACCOUNT/CONTAINER/FOLDER. Raises BackupProblem."""
    if isinstance(where, str) and "://" in where:
        from .bucket import Bucket  # its library is loaded only if a bucket is used

        try:
            return Bucket(where)
        except DestinationRefused as refused:
            raise BackupProblem(f"The endpoint of {where} {refused}.") from refused
    return FolderPlace(Path(where).resolve())
