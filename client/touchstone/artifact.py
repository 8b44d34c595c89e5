"""Tables and artifacts of W&B. Both are files of a run here: an artifact is what lies below `artifacts/NAME`."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .unsupported import once
from .wandb_config import UsageError


class Table:
    """Rows under named columns, kept as a file of the run."""

    def __init__(
        self, columns: Sequence[str] = (), data: Iterable[Sequence[Any]] = (), dataframe: Any = None, **_: Any
    ) -> None:
        if dataframe is not None:
            columns, data = [str(name) for name in dataframe.columns], dataframe.values.tolist()
        self.columns, self.data = list(columns), list[list[Any]]()
        for row in data:
            self.add_data(*row)

    def add_data(self, *row: Any) -> None:
        """Raises UsageError if the row does not fit the columns."""
        if len(row) != len(self.columns):
            raise UsageError(f"A row of {len(row)} values does not fit {len(self.columns)} columns.")
        self.data.append(list(row))

    def add_column(self, name: str, data: Iterable[Any], **_: Any) -> None:
        """Raises UsageError if there are not as many values as rows."""
        values = list(data)
        if self.data and len(values) != len(self.data):
            raise UsageError(f"A column of {len(values)} values does not fit {len(self.data)} rows.")
        self.columns.append(name)
        self.data = [[*row, value] for row, value in zip(self.data or [[] for _ in values], values, strict=True)]

    def get_column(self, name: str, **_: Any) -> list[Any]:
        return [row[self.columns.index(name)] for row in self.data]

    def text(self) -> str:
        return json.dumps({"columns": self.columns, "data": self.data}, default=str)


class Artifact:
    """Files under the name of an artifact. `files`: their paths in it -> the files on disk."""

    def __init__(
        self, name: str, type: str, description: str | None = None, metadata: Mapping[str, Any] | None = None, **_: Any
    ) -> None:
        self.name, self.type, self.description = name, type, description
        self.metadata = dict(metadata or {})
        self.files: dict[str, Path] = {}
        self._made: tempfile.TemporaryDirectory[str] | None = None

    def add_file(self, local_path: Any, name: str | None = None, **_: Any) -> None:
        """Raises FileNotFoundError, as W&B does."""
        path = Path(local_path)
        if not path.is_file():
            raise FileNotFoundError(f"There is no file {path}.")
        self.files[name or path.name] = path

    def add_dir(self, local_path: Any, name: str | None = None, **_: Any) -> None:
        root = Path(local_path)
        if not root.is_dir():
            raise NotADirectoryError(f"There is no folder {root}.")
        for path in sorted(root.rglob("*")):
            if path.is_file():
                inside = path.relative_to(root).as_posix()
                self.files[f"{name}/{inside}" if name else inside] = path

    @contextmanager
    def new_file(self, name: str, mode: str = "w", encoding: str | None = None) -> Iterator[IO[Any]]:
        self._made = self._made or tempfile.TemporaryDirectory()
        path = Path(self._made.name) / f"{len(self.files)}.bin"
        with path.open(mode, encoding=encoding) as out:
            yield out
        self.files[name] = path

    def add(self, obj: Any, name: str) -> None:
        """A table is a file; other objects are left out."""
        if not hasattr(obj, "text"):
            once("an artifact takes files and tables: a %s is left out", type(obj).__name__)
            return
        with self.new_file(f"{name}.table.json") as out:
            out.write(obj.text())

    def add_reference(self, uri: str, *_: Any, **__: Any) -> None:
        once("an artifact has no references: %s is left out", uri)

    def wait(self, *_: Any, **__: Any) -> "Artifact":
        return self
