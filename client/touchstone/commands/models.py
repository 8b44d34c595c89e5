"""Models of the registry: list, register."""

from typing import Annotated

import typer

from .. import terminal
from ..terminal import PAGE, Limit, Lines, listed, told

app = typer.Typer(help="Models: list, register.", no_args_is_help=True)


@app.command("list")
def models_list(limit: Limit = 20, as_json: Lines = False) -> None:
    """Lists the newest models."""
    with told():
        columns = {"id": "id", "model": "name", "source": "source", "stage": "stage", "path": "path"}
        listed(terminal.server().all("/models", limit=min(limit, PAGE)), columns, as_json, limit)


@app.command("register")
def models_register(
    name: str,
    path: Annotated[str, typer.Argument(help="A folder of the server, or the name of a model in a hub")],
    source: Annotated[str, typer.Option(help="local or hub")] = "local",
    description: str = "",
) -> None:
    """Registers a model, and prints its number."""
    with told():
        body = {"name": name, "source": source, "path": path, "description": description}
        print(terminal.server().post("/models", body)["id"])
