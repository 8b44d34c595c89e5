"""Downloads that continue where they stopped: from the byte after the last one, if the server still has the same content."""

import errno
import hashlib
import tarfile
from pathlib import Path
from typing import Any, BinaryIO

import httpx

WHOLE = {"Accept-Encoding": "identity"}  # the bytes of the content, so that they can be counted


def wanted(size: int, tag: str) -> dict[str, str]:
    """The headers that ask for the rest after `size` bytes, or for the whole if the content is no longer the one with this tag."""
    return {**WHOLE, "Range": f"bytes={size}-", "If-Range": tag} if size and tag else WHOLE


def tag_of(answer: httpx.Response) -> str:
    """The tag of the content, if the server can continue it."""
    return str(answer.headers.get("ETag", "")) if answer.headers.get("Accept-Ranges") == "bytes" else ""


class Passed:
    """Content that is written to a stream, where nothing can be taken back."""

    def __init__(self, out: BinaryIO) -> None:
        self.out, self.size, self.tag = out, 0, ""

    def wanted(self) -> dict[str, str]:
        return wanted(self.size, self.tag)

    def take(self, answer: httpx.Response) -> None:
        if self.size and answer.status_code != 206:
            self.restart()
        self.tag = tag_of(answer)
        for piece in answer.iter_bytes():
            self.out.write(piece)
            self.size += len(piece)

    def restart(self) -> None:
        raise ValueError("The download was interrupted and cannot be continued. Start it again.")


class Partial:
    """A file on its way: `NAME.partial`, and beside it the tag of its content."""

    def __init__(self, to: Path) -> None:
        if not to.parent.is_dir():
            raise NotADirectoryError(errno.ENOENT, "There is no such folder", str(to.parent))
        self.to = to
        self.path, self._tag = to.with_name(f"{to.name}.partial"), to.with_name(f"{to.name}.partial.tag")
        self.kind = ""

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() and self._tag.exists() else 0

    def wanted(self) -> dict[str, str]:
        return wanted(self.size, self._tag.read_text() if self._tag.exists() else "")

    def take(self, answer: httpx.Response) -> None:
        """Writes what an answer holds. Raises httpx.TransportError, OSError."""
        rest = answer.status_code == 206
        if not rest:
            self.restart(tag_of(answer))
        self.kind = answer.headers.get("Content-Type", "")
        with self.path.open("ab" if rest else "wb") as out:
            for piece in answer.iter_bytes():
                out.write(piece)

    def restart(self, tag: str = "") -> None:
        self._tag.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)
        if tag:
            self._tag.write_text(tag)

    def left(self, refused: bool) -> None:
        """The download was broken off. What cannot be continued is removed."""
        if refused or not self.size:
            self.restart()

    def finished(self, digest: str) -> None:
        """Gives the file its name. Raises ValueError if it has another digest."""
        try:
            if digest and digest not in digests(self.path, self.kind):
                raise ValueError(f"{self.to} has another digest than the file on the server. Start the download again.")
            self.path.replace(self.to)
        finally:
            self.restart()


def digests(path: Path, kind: str) -> set[str]:
    """SHA-256 of a file. For a tar, that over the lines `<digest>  <path>` of its files, as `sha256sum` prints them."""
    if "x-tar" not in kind:
        with path.open("rb") as content:
            return {hashlib.file_digest(content, "sha256").hexdigest()}
    lines = []
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile():
                file: Any = archive.extractfile(member)
                inside = member.name.partition("/")[2]
                lines.append((inside, hashlib.file_digest(file, "sha256").hexdigest()))
    said = "".join(f"{digest}  {inside}\n" for inside, digest in sorted(lines))
    return {hashlib.sha256(said.encode()).hexdigest()}
