"""All commands share this module: the server, refusals, common options, printing."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.models import CommandInfo

from .account import TOKEN
from .http import TOKEN_REFUSED, ApiError, Away
from .server import Server

WIDE = 1_000  # columns of a table that no terminal shows


def _width(stream: TextIO) -> int | None:
    """The width of what is printed; None: as wide as the terminal. A program that reads tables gets each row on one line."""
    return None if stream.isatty() or "COLUMNS" in os.environ else WIDE


# all but tables is printed with soft_wrap, so that lines which a script reads are not broken at some width of a terminal
out, err = Console(width=_width(sys.stdout)), Console(stderr=True)
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
    known, told = Server(), list[str]()
    if not known.token:
        raise ValueError(f"There is no token for {known.address}: run `touchstone login`, or set {TOKEN}.")

    def notice(problem: str) -> None:
        if not told:
            told.append(problem)
            err.print(Text(f"{problem}. Trying again …", style="yellow"), soft_wrap=True)

    known.notice = notice
    return known


def group(help: str) -> typer.Typer:
    """A group of commands. An error never shows the values of variables, of which one is the token."""
    return typer.Typer(help=help, no_args_is_help=True, pretty_exceptions_show_locals=False)


def teach(app: typer.Typer, panels: Mapping[str, str]) -> None:
    """Takes the helps of commands from their docstrings: whole for `--help`, and their first sentence for the list of commands. `panels`:
    name of a command -> the heading below which the list has it."""
    order = list(panels)
    app.registered_commands.sort(key=lambda each: order.index(_named(each)) if order else 0)
    for each in app.registered_commands:
        each.rich_help_panel = panels.get(_named(each))
        told = " ".join(((each.callback and each.callback.__doc__) or "").split())
        each.help, each.short_help = told, f"{told.partition('. ')[0].removesuffix('.')}."


def _named(command: CommandInfo) -> str:
    return command.name or (command.callback.__name__ if command.callback else "")


@contextmanager
def refusals_printed() -> Iterator[None]:
    """Prints a refusal in the server's words, with exit code 1. If the server is away, or the input cannot be used, the exit code is 2."""
    try:
        yield
    except ApiError as error:
        for line in refusal(error):
            err.print(Text(line, style="red"), soft_wrap=True)
        raise typer.Exit(1) from None
    except BrokenPipeError:  # the reader has seen enough; the interpreter must not write the rest at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except KeyError as error:
        words = f"The answer has no {error}. Is a Touchstone server there, of the version of this command?"
        err.print(Text(words, style="red"), soft_wrap=True)
        raise typer.Exit(2) from None
    except (Away, OSError, ValueError) as error:
        words = f"{error.filename}: {error.strerror}." if isinstance(error, OSError) and error.filename else str(error)
        err.print(Text(words, style="red"), soft_wrap=True)
        raise typer.Exit(2) from None


def refusal(error: ApiError) -> list[str]:
    """The lines that say why the server refused: each wrong field has its own. A missing thing is named by the request that asked for it."""
    if error.status == 401:
        return [TOKEN_REFUSED]
    message = f"{error.message} ({error.asked})" if error.status == 404 and error.asked else error.message
    lines = [message, *(f"  {path or 'the body'}: {why}" for path, why in error.fields.items())]
    return [*lines, f"  id: {error.id}"] if error.status >= 500 and error.id else lines


def say(text: str, style: str = "") -> None:
    out.print(Text(text, style=style), soft_wrap=True)


def print_json(answer: object) -> None:
    """Prints an answer as JSON that people can read."""
    print(json.dumps(answer, indent=2, ensure_ascii=False))


def print_rows(
    rows: Iterable[Mapping[str, object]], columns: Mapping[str, str], as_json: bool, limit: int = 10_000
) -> int:
    """Prints rows as a table, or as lines of JSON, and returns how many. `columns`: heading -> place of its value, such as `progress.step`."""
    table, count = Table(*columns, box=None), 0
    for count, row in enumerate(islice(rows, limit), 1):  # noqa: B007
        if as_json:
            print(json.dumps(row, ensure_ascii=False))
        else:
            table.add_row(*(Text(_cell(row, place)) for place in columns.values()))
    if not as_json:
        out.print(table)
    return count


def _cell(row: Mapping[str, object], place: str) -> str:
    value: object = row
    for name in place.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, float):
        return f"{value:.6g}"
    return "–" if value is None else " ".join(str(value).split())


def json_of(text: str) -> Any:
    """The JSON of an argument: itself, `@FILE`, or `-` for the standard input. Raises OSError, ValueError."""
    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        text = Path(text[1:]).read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"The body is not JSON: {error}") from None


def yaml_of(file: Path) -> Any:
    """The content of the file; `-` is the standard input. Raises OSError, and ValueError with the place of the error."""
    try:
        return yaml.safe_load(sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8"))
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


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
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
