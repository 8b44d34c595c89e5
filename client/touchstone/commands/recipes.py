"""The commands here list recipes with their presets, fields and metrics, and compare the recipes with a dataset."""

from typing import Annotated

import typer
import yaml
from rich.table import Table
from rich.text import Text

from .. import terminal
from ..api.recipes import RecipeOut
from ..server import Server
from ..terminal import Lines, out, print_json, print_rows, refusals_printed, say

Name = Annotated[str, typer.Argument(help="Such as policy; without a name, all are listed")]
Schema = Annotated[
    bool, typer.Option("--schema", help="Every field of the config, as JSON Schema: default, bounds, unit and help")
]
Metrics = Annotated[bool, typer.Option("--metrics", help="Every metric of the recipe")]
Fit = Annotated[str, typer.Option("--for", help="A dataset: what each recipe finds in it")]


def recipes(
    name: Name = "", schema: Schema = False, metrics: Metrics = False, dataset: Fit = "", as_json: Lines = False
) -> None:
    """Lists what a run can do, or shows one recipe with its presets: configs with which a file for `launch` can begin."""
    with refusals_printed():
        known = terminal.server()
        if dataset:
            _fits(known, dataset, as_json)
        elif schema:
            print_json(known.recipes.schema(name))
        elif metrics:
            columns = {"metric": "key", "unit": "unit", "help": "help"}
            print_rows(known.recipes.metrics_of(name)["metrics"], columns, as_json)
        elif as_json:
            print_rows([known.recipes.get(name)] if name else known.recipes.all()["items"], {}, as_json=True)
        elif name:
            _recipe(known.recipes.get(name))
        else:
            _gallery(known.recipes.all()["items"])


def _recipe(found: RecipeOut) -> None:
    say(f"{found['title']}\n{found['summary']}")
    for preset in found["presets"]:
        say(f"\n{preset['name']}: {preset['title']}. {preset['help']}")
        say(yaml.safe_dump({"config": preset["config"]}, sort_keys=False))


def _gallery(found: list[RecipeOut]) -> None:
    table = Table("recipe", "title", "presets", box=None)
    for recipe in found:
        presets = ", ".join(preset["name"] for preset in recipe["presets"])
        table.add_row(*map(Text, (recipe["name"], recipe["title"], presets)))
    out.print(table)


def _fits(known: Server, dataset: str, as_json: bool) -> None:
    rows = known.recipes.fit(dataset=dataset)["items"]
    if as_json:
        print_rows(rows, {}, as_json=True)
        return
    for row in rows:
        says = {True: "fits", False: "does not fit", None: "not known"}[row["fits"]]
        needs = "; ".join(f"{need['train']:,} {need['words']}, {need['heldout']:,} held out" for need in row["needs"])
        say(f"{row['recipe']:16} {says:12} {needs}")
