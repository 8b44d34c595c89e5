"""Models of the registry: list, show, register, download, aliases."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from .. import terminal
from ..terminal import PAGE, AsJson, Limit, Lines, group, print_json, print_rows, refusals_printed, say

app = group("Models: list, show, register, download, aliases.")


@app.command("list")
def models_list(limit: Limit = 20, as_json: Lines = False) -> None:
    """Lists the newest models."""
    with refusals_printed():
        columns = {"id": "id", "model": "name", "source": "source", "stage": "stage", "path": "path"}
        print_rows(terminal.server().models.all(page_size=min(limit, PAGE)), columns, as_json, limit)


@app.command("download")
def models_download(
    model: int,
    to: Annotated[Path, typer.Option("--to", "-o", help="Folder or file to write")] = Path("."),
) -> None:
    """Fetches the folder of a model that a run has trained, as a tar, and checks its digest. If the download breaks, or if you stop it, the
    same command continues where it stopped."""
    with refusals_printed():
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
    with refusals_printed():
        model = terminal.server().models.register(
            {"name": name, "source": source, "path": path, "description": description}
        )
        print(model["id"])


@app.command("show")
def models_show(model: int, as_json: AsJson = False) -> None:
    """Shows a model: where it comes from, and what is known about it."""
    with refusals_printed():
        found = terminal.server().models.get(model)
        if as_json:
            print_json(found)
            return
        aliases = " ".join(f"@{name}" for name in found["aliases"])
        facts = (found["name"], found["source"], found["role"], found["stage"], aliases, found["path"])
        say(" · ".join(fact for fact in facts if fact), "bold")
        for name, value in found["facts"].items():
            say(f"  {name}: {value}")


@app.command("aliases")
def models_aliases(as_json: Lines = False) -> None:
    """Lists the aliases, and the models at which they point."""
    with refusals_printed():
        columns = {"alias": "name", "model": "model.name", "id": "model.id", "moved": "moved_at"}
        print_rows(terminal.server().models.list_aliases(page_size=PAGE), columns, as_json)


@app.command("alias")
def models_alias(
    name: Annotated[str, typer.Argument(help="Such as champion")],
    model: int,
    reason: Annotated[str, typer.Option(help="Why; it is kept with the move")] = "",
) -> None:
    """Lets an alias point at a model. Creates the alias if there is none."""
    with refusals_printed():
        moved = terminal.server().models.move_alias(name, {"model": model, "reason": reason})
        say(f"@{moved['name']} points at {moved['model']['name']}.")
