"""Models of the registry: list, register."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from .. import terminal
from ..terminal import PAGE, Limit, Lines, listed, told

app = typer.Typer(help="Models: list, register.", no_args_is_help=True)


@app.command("list")
def models_list(limit: Limit = 20, as_json: Lines = False) -> None:
    """Lists the newest models."""
    with told():
        columns = {"id": "id", "model": "name", "source": "source", "stage": "stage", "path": "path"}
        listed(terminal.server().models.all(page_size=min(limit, PAGE)), columns, as_json, limit)


@app.command("download")
def models_download(
    model: int,
    to: Annotated[Path, typer.Option("--to", "-o", help="Folder or file to write")] = Path("."),
) -> None:
    """Fetches the folder of a model that a run has trained, as a tar, and checks its digest. If the download breaks, or if you stop it, the
    same command continues where it stopped."""
    with told():
        known = terminal.server()
        row = known.models.get(model)
        target = to / f"model-{model}.tar" if to.is_dir() else to
        known.fetch(f"/api/v1/models/{model}/download", target, row["digest"])
        print(target)


@app.command("register")
def models_register(
    name: str,
    path: Annotated[str, typer.Argument(help="A folder of the server, or the name of a model in a hub")],
    source: Annotated[Literal["local", "hub"], typer.Option(help="local or hub")] = "local",
    description: str = "",
) -> None:
    """Registers a model, and prints its number."""
    with told():
        model = terminal.server().models.register(
            {"name": name, "source": source, "path": path, "description": description}
        )
        print(model["id"])
