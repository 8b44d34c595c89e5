"""The command `touchstone`: launches, follows, compares and fetches what a server has. It uses only the API."""

import json
import sys
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import uuid4

import typer
import yaml
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from . import account, terminal
from .api.costs import CostAmountOut
from .calling import quote_part
from .commands import changes as _  # noqa: F401  adds its commands to those of runs
from .commands import (
    claims,
    datasets,
    evaluations,
    imports,
    models,
    projects,
    recipes,
    repeats,
    rollouts,
    runs,
    sweeps,
    webhooks,
)
from .http import NAME
from .server import Server
from .terminal import (
    FOLLOW_S,
    PAGE,
    AsJson,
    Every,
    Key,
    Limit,
    Lines,
    err,
    out,
    print_json,
    print_rows,
    refusals_printed,
    say,
)

if TYPE_CHECKING:
    from .imports import Sent

app = typer.Typer(
    help="A Touchstone server from the terminal. Begin with `touchstone login`; `touchstone COMMAND --help` explains each command. "
    "The exit code is 0 if all went well, 1 if the server refuses, and 2 if it is away or the input cannot be used.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
GROUPS = {
    "datasets": datasets.app,
    "imports": imports.app,
    "projects": projects.app,
    "runs": runs.app,
    "rollouts": rollouts.app,
    "sweeps": sweeps.app,
    "repeats": repeats.app,
    "evaluations": evaluations.app,
    "claims": claims.app,
    "models": models.app,
    "webhooks": webhooks.app,
}
PANELS = {
    "Begin": ("login", "needs", "notices", "watch"),
    "Data and people": ("import", "imports", "datasets", "export", "projects"),
    "Training": ("recipes", "launch", "runs", "compare", "download", "rollouts", "sweeps", "repeats", "costs"),
    "Models and what they are worth": ("models", "generate", "evaluations", "claims"),
    "Other programs": ("import-runs", "sync", "webhooks", "api"),
}
HEADINGS = {name: heading for heading, names in PANELS.items() for name in names}
for name, group in GROUPS.items():
    app.add_typer(group, name=name, rich_help_panel=HEADINGS[name])
app.command()(recipes.recipes)
UNCHECKED = ("experiment", "name", "not_before", "retries", "limits")  # of a launch: a check does not read them
COSTS: tuple[Literal["hours", "gpu_hours", "tokens", "money", "minutes"], ...] = (
    "hours",
    "gpu_hours",
    "tokens",
    "money",
    "minutes",
)
TONES = {"bad": ("x", "red"), "warn": ("!", "yellow"), "info": ("-", "cyan"), "good": ("+", "green")}


def _version(wanted: bool) -> None:
    if wanted:
        try:
            print(metadata.version(NAME))
        except metadata.PackageNotFoundError:
            print("not installed: run from its folder")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version of this command")
    ] = False,
) -> None:
    pass


@app.command()
def login(
    address: Annotated[str, typer.Option(help="The server's address")] = "",
    token: Annotated[str, typer.Option(help="An API token; if it is left out, the command asks for it")] = "",
) -> None:
    """Keeps the server's address and a token for the commands that follow, in a file that only you can read."""
    with refusals_printed():
        address = address or typer.prompt("Address", default="http://127.0.0.1:8000")
        token = token or typer.prompt("API token (Settings → API tokens)", hide_input=True)
        me = Server(address, token).get("/me")
        place = account.keep(address, token)
        out.print(
            f"Signed in as {me['email']} in {me['workspace']['name']}. The token is stored in {place}.",
            markup=False,
            soft_wrap=True,
        )


@app.command()
def costs(
    by: Annotated[
        str, typer.Option(help="The kind of a line: month, project, run (any piece of work) or person")
    ] = "month",
    month: Annotated[str, typer.Option(help="Only this month (UTC), such as 2026-11; default: all time")] = "",
    sort: Annotated[str, typer.Option(help="hours, gpu_hours, tokens, money or minutes: the largest first")] = "hours",
    run: Annotated[int | None, typer.Option(help="Only this run")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 50,
    as_json: Lines = False,
) -> None:
    """Shows what work has cost. A dash means that nothing was measured; +3? means that three more are not known."""
    with refusals_printed():
        table = Table(by, *(each.replace("_", " ") for each in COSTS), box=None)
        rows = terminal.server().all("/costs", by=by, month=month or None, sort=sort, run=run, limit=min(limit, PAGE))
        for row in islice(rows, limit):
            if as_json:
                print(json.dumps(row, ensure_ascii=False))
            else:
                table.add_row(Text(row["name"]), *(Text(_amount(row[name])) for name in COSTS))
        if not as_json:
            out.print(table)


def _amount(amount: CostAmountOut) -> str:
    value = "–" if amount["value"] is None else f"{amount['value']:,.2f}".removesuffix(".00")
    return f"{value} +{amount['unknown']:,}?" if amount["unknown"] else value


@app.command()
def api(
    method: Annotated[str, typer.Argument(help="GET, POST, PUT, PATCH or DELETE")],
    path: Annotated[str, typer.Argument(help="Path after /api/v1, with its query, such as /runs?state=running")],
    body: Annotated[str, typer.Argument(help="JSON, or @FILE with JSON, or - for the standard input")] = "",
    key: Key = "",
) -> None:
    """Sends any request of the API, and prints the answer: as JSON, or as the server wrote it if it is something else, such as CSV."""
    with refusals_printed():
        given = {"json": terminal.json_of(body)} if body else {}
        place = path.lstrip("/").removeprefix("api/v1/")
        answer = terminal.server().ask(method.upper(), f"/api/v1/{place}", key=key or None, **given)
        if "json" in answer.headers.get("Content-Type", ""):
            print_json(answer.json())
        elif answer.content:
            sys.stdout.write(answer.text)


@app.command()
def launch(
    file: Annotated[
        Path,
        typer.Argument(
            help="YAML file with recipe, dataset and config; if needed also with model, experiment, name, not_before, retries and limits"
        ),
    ],
    follow: Annotated[bool, typer.Option(help="Draw the run until it is over")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only check the file: print the complete config")] = False,
    draft: Annotated[bool, typer.Option("--draft", help="Keep it as a draft, and launch nothing")] = False,
    key: Key = "",
) -> None:
    """Launches a run, or keeps a draft, and prints its number."""
    with refusals_printed():
        body = terminal.body_of(file, "recipe, dataset and config")
        if check:
            _checked(body)
            return
        run = terminal.server().launch(body | ({"draft": True} if draft else {}), key or uuid4().hex)
        print(run["id"])
        _warned(run.get("warnings", []))  # an older server has none
    if follow and not draft:
        runs.runs_follow(run["id"])


def _checked(body: dict[str, Any]) -> None:
    """Prints the complete config, and how many held-out prompts would be trained on."""
    if "recipe" not in body:
        raise ValueError("The file names no recipe; `touchstone recipes` lists them.")
    asked = {name: value for name, value in body.items() if name not in ("recipe", *UNCHECKED)}
    found = terminal.server().post(f"/recipes/{quote_part(str(body['recipe']))}/check", asked, again=True)
    print(yaml.safe_dump(found["config"], sort_keys=False, allow_unicode=True), end="")
    for name, words in (("leaks", "held-out prompts are trained on"), ("near", "are nearly the same")):
        if found[name]:
            err.print(Text(f"{len(found[name]):,} {words}", style="yellow"), soft_wrap=True)
    _warned(found.get("warnings", []))


def _warned(warnings: list[str]) -> None:
    for text in warnings:
        err.print(Text(f"{text}.", style="yellow"), soft_wrap=True)


@app.command("import")
def import_file(
    file: Path,
    name: Annotated[str, typer.Option(help="The dataset's name")] = "",
    format: Annotated[str, typer.Option(help="The file's format; by default it is detected")] = "",
    keep_good: Annotated[bool, typer.Option(help="If a file has bad lines, import the good ones")] = False,
    wait: Annotated[
        bool, typer.Option(help="Wait until it is there; otherwise print the number of the import, for `imports wait`")
    ] = True,
    every: Every = FOLLOW_S,
) -> None:
    """Imports a file as a version of a dataset, and waits until it is there."""
    with refusals_printed():
        known = terminal.server()
        job = known.import_file(file, name, format=format, keep_good=keep_good)
        if not wait:
            print(job["id"])
            return
        imports.report(known.imported(job, every))


@app.command("import-runs")
def import_runs(
    path: Annotated[Path, typer.Argument(help="A folder, file or archive of TensorBoard, Trackio or Neptune")],
    experiment: Annotated[
        str, typer.Option(help="Experiment for the runs; default: the name in the files, or the name of the folder")
    ] = "",
    follow: Annotated[
        bool, typer.Option(help="Keep reading event files that are still being written, until Ctrl-C")
    ] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks", min=0.1)] = FOLLOW_S,
) -> None:
    """Sends runs that another tool has kept. Prints a line of JSON for each, with what a run here cannot hold. Runs that are
    sent again stay the same runs."""
    from .imports import send

    with refusals_printed():
        for sent in send(
            terminal.server(), path, experiment, every if follow else 0.0, _watched if follow else _nothing, _passed
        ):
            print(json.dumps(sent.json(), ensure_ascii=False))


def _watched(sent: "Sent") -> None:
    err.print(Text(f"{sent.experiment} / {sent.name}: {sent.points:,} points"), soft_wrap=True)


def _passed(why: str) -> None:
    err.print(Text(f"Left out: {why}", style="yellow"), soft_wrap=True)


def _nothing(sent: "Sent") -> None:
    pass


@app.command("export")
def export_version(
    dataset: int,
    version: int,
    to: Annotated[Path, typer.Option("--to", "-o", help="File to write; - is the terminal")] = Path("-"),
    format: str = "touchstone",
) -> None:
    """Writes a version of a dataset as JSON Lines."""
    with refusals_printed():
        address = f"/api/v1/datasets/{dataset}/versions/{version}/export"
        known = terminal.server()
        if str(to) == "-":
            known.save(address, sys.stdout.buffer, format=format)
        else:
            known.fetch(address, to, format=format)


@app.command()
def compare(runs: list[int], as_json: AsJson = False) -> None:
    """Compares runs: the config fields in which they differ, and their newest numbers."""
    with refusals_printed():
        found = terminal.server().runs.compare(ids=",".join(map(str, runs)))
        if as_json:
            print_json(found)
            return
        table = Table("", *[escape(f"{each['id']} {each['name']}") for each in found["runs"]], box=None)
        for row in found["config"]:
            table.add_row(Text(row["path"]), *[Text("" if value is None else str(value)) for value in row["values"]])
        for key in sorted({key for each in found["runs"] for key in each["summary"]}):
            values = [each["summary"].get(key) for each in found["runs"]]
            table.add_row(Text(key, style="bold"), *[Text("" if value is None else f"{value:.6g}") for value in values])
        out.print(table)


@app.command()
def download(
    run: int,
    path: Annotated[str, typer.Argument(help="Path of the artifact; without it, the artifacts are listed")] = "",
    to: Annotated[Path, typer.Option("--to", "-o", help="Folder or file to write")] = Path("."),
    as_json: Lines = False,
) -> None:
    """Fetches an artifact of a run, such as checkpoints/step-000040; a folder comes as a tar. If the download breaks, or if you stop it, the
    same command continues where it stopped. At the end, the digest of a model or a file is checked."""
    with refusals_printed():
        known = terminal.server()
        rows = [row for row in known.runs.list_artifacts(run, page_size=PAGE) if row["present"]]
        if not path:
            if as_json:
                print_rows(rows, {}, as_json=True)
                return
            for row in rows:
                say(f"{row['path']}  {row['bytes']:,} bytes")
            return
        named = [row for row in rows if row["path"] in (path, f"files/{path}")]
        if not named:
            raise ValueError(f"Run {run} has no artifact {path}.")
        row = named[0]
        target = to / Path(row["path"]).name if to.is_dir() else to
        checked = "" if row["role"] == "checkpoint" else row["digest"]  # that of a checkpoint is of its index alone
        kind = known.fetch(row["download"] or "", target, checked)
        if to.is_dir() and "x-tar" in kind:
            target = target.rename(target.with_name(f"{target.name}.tar"))
        print(target)


@app.command()
def needs(as_json: AsJson = False) -> None:
    """Lists what needs attention, and what has finished since yesterday, as the page Home does."""
    with refusals_printed():
        found = terminal.server().needs.get()
        if as_json:
            print_json(found)
            return
        for item in (*found["now"], *found["waiting"], *found["news"]):
            mark, style = TONES[item["tone"]]
            out.print(Text.assemble((f"{mark} {item['title']}", style), f"  {item['href']}"), soft_wrap=True)
            if item["text"]:
                say(f"  {item['text']}")
        if not found["now"]:
            say("Nothing needs attention.")


@app.command()
def notices(
    unread: Annotated[bool, typer.Option("--unread", help="Only the notices that you have not read")] = False,
    limit: Limit = 20,
    as_json: Lines = False,
) -> None:
    """Lists your notices, newest first."""
    with refusals_printed():
        rows = terminal.server().notices.all(unread=unread, page_size=min(limit, PAGE))
        print_rows(rows, {"at": "created_at", "event": "event", "notice": "title", "page": "href"}, as_json, limit)


@app.command()
def watch(
    kind: Annotated[str, typer.Argument(help="run, sweep, evaluation, project, dataset, judge, model or import")],
    number: int,
    off: Annotated[bool, typer.Option("--off", help="Stop watching it")] = False,
) -> None:
    """Watches a thing: you get notices of what becomes of it."""
    with refusals_printed():
        said = terminal.server().post("/watches", {"kind": kind, "id": number, "on": not off}, again=True)
        say(f"You {'watch' if said['on'] else 'no longer watch'} {said['kind']} {said['id']}.")


@app.command()
def generate(model: int, prompt: str, max_new_tokens: int = 256, temperature: float = 0.0, seed: int = 0) -> None:
    """Has a model of the registry answer, and prints the answer while it is written."""
    with refusals_printed():
        body = {"prompt": prompt, "max_new_tokens": max_new_tokens, "temperature": temperature, "seed": seed}
        for kind, data in terminal.server().events(f"/models/{model}/generate", body):
            if kind == "token":
                print(data["text"], end="", flush=True)
            elif kind == "error":
                raise ValueError(f"{data.get('message') or data.get('code')}")
        print()


@app.command()
def sync() -> None:
    """Sends what programs with `touchstone.wandb` have left on disk while the server was away."""
    from .spool import send_kept

    with refusals_printed():
        waits = 0
        for name, left, refused in send_kept(terminal.server()):
            waits += left
            print(f"{name}: {'sent' if not left else f'{left} lines are not sent yet'}")
            for why in refused:
                err.print(Text(f"  refused: {why}", style="yellow"), soft_wrap=True)
        if waits:
            raise typer.Exit(2)


terminal.teach(app, HEADINGS)
for group in GROUPS.values():
    terminal.teach(group, {})
