"""What the commands share: the server, refusals, options that several have, and how they print."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import account
from .http import TOKEN_REFUSED, ApiError, Away
from .server import Server

# all but tables is printed with soft_wrap, so that lines which a script reads are not broken at some width of a terminal
out, err = Console(), Console(stderr=True)
FOLLOW_S = 2.0
PAGE = 200  # rows of a page
Key = Annotated[
    str,
    typer.Option(
        help="Key of this request: it takes effect only once, even if you repeat the command with the same key"
    ),
]
Lines = Annotated[bool, typer.Option("--json", help="One JSON object a line")]
AsJson = Annotated[bool, typer.Option("--json", help="The answer as JSON")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Rows at most")]
Every = Annotated[float, typer.Option(min=0.1, help="Seconds between two looks")]


def server() -> Server:
    """The server of this command; tests put another in its place."""
    return account.server()


@contextmanager
def told() -> Iterator[None]:
    """Prints a refusal in the server's words, with exit code 1. If the server is away, the exit code is 2."""
    try:
        yield
    except ApiError as error:
        err.print(Text(TOKEN_REFUSED if error.status == 401 else str(error), style="red"), soft_wrap=True)
        raise typer.Exit(1) from None
    except (Away, OSError, ValueError) as error:
        err.print(Text(str(error), style="red"), soft_wrap=True)
        raise typer.Exit(2) from None


def say(text: str, style: str = "") -> None:
    out.print(Text(text, style=style), soft_wrap=True)


def whole(answer: object) -> None:
    """Prints an answer as JSON that people can read."""
    print(json.dumps(answer, indent=2, ensure_ascii=False))


def listed(
    rows: Iterable[Mapping[str, object]], columns: Mapping[str, str], as_json: bool, limit: int = 10_000
) -> None:
    """Prints rows as a table, or as lines of JSON. `columns`: heading -> place of its value, such as `progress.step`."""
    table = Table(*columns, box=None)
    for row in islice(rows, limit):
        if as_json:
            print(json.dumps(row, ensure_ascii=False))
        else:
            table.add_row(*(Text(_cell(row, place)) for place in columns.values()))
    if not as_json:
        out.print(table)


def _cell(row: Mapping[str, object], place: str) -> str:
    value: object = row
    for name in place.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, float):
        return f"{value:.6g}"
    return "–" if value is None else " ".join(str(value).split())


def json_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"The body is not JSON: {error}") from None


def yaml_of(file: Path) -> Any:
    """What the file holds. Raises OSError, and ValueError with the place of the error."""
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        place = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ValueError(f"{file} is not YAML{place}: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{file} is not YAML: {error}") from None


def body_of(file: Path, needs: str) -> dict[str, Any]:
    """The request that a file holds."""
    body = yaml_of(file)
    if not isinstance(body, dict):
        raise ValueError(f"{file} cannot be launched: it needs {needs}.")
    return body


def nested(settings: list[str] | None) -> dict[str, Any]:
    """`["optim.lr=1e-4", "steps=80"]` as a config. A value is read as JSON if it is JSON, otherwise as YAML. Raises ValueError."""
    config: dict[str, Any] = {}
    for setting in settings or []:
        path, mark, text = setting.partition("=")
        if not mark or not path:
            raise ValueError(f"{setting} sets nothing: write KEY=VALUE, such as optim.lr=1e-4.")
        *folders, name = path.split(".")
        place = config
        for folder in folders:
            place = place.setdefault(folder, {})
            if not isinstance(place, dict):
                raise ValueError(f"{setting} contradicts another --set.")
        place[name] = _value(text)
    return config


def _value(text: str) -> Any:
    try:
        return json.loads(text)  # YAML reads 1e-4 as a text
    except ValueError:
        return yaml.safe_load(text)
