"""The command `touchstone`: launches, follows, compares and fetches what a server has. It uses only the API."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal
from uuid import uuid4

import httpx
import typer
import yaml
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from . import account, imports
from .http import OVER, TOKEN_REFUSED, ApiError, Away, Server
from .plot import curve
from .spool import send_kept
from .types import CostAmount

app = typer.Typer(help="A Touchstone server from the terminal.", no_args_is_help=True, add_completion=False)
runs_app = typer.Typer(help="Runs: list, show, follow.", no_args_is_help=True)
app.add_typer(runs_app, name="runs")
claims_app = typer.Typer(help="Claims of papers: test one, and see its results.", no_args_is_help=True)
app.add_typer(claims_app, name="claims")
# all but tables is printed with soft_wrap, so that lines which a script reads are not broken at some width of a terminal
out, err = Console(), Console(stderr=True)
FOLLOW_S = 2.0
COSTS: tuple[Literal["hours", "gpu_hours", "tokens", "money", "minutes"], ...] = (
    "hours",
    "gpu_hours",
    "tokens",
    "money",
    "minutes",
)
TONES = {"bad": ("x", "red"), "warn": ("!", "yellow"), "info": ("-", "cyan"), "good": ("+", "green")}
DRAW_S = 0.2  # between two drawings of a run that is followed


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


@app.command()
def login(
    address: Annotated[str, typer.Option(help="The server's address")] = "",
    token: Annotated[str, typer.Option(help="An API token; if it is left out, the command asks for it")] = "",
) -> None:
    """Keeps the server's address and a token for the commands that follow, in a file that only you can read."""
    with told():
        address = address or typer.prompt("Address", default="http://127.0.0.1:8000")
        token = token or typer.prompt("API token (Settings → API tokens)", hide_input=True)
        known = account.server(address, token)
        me = known.get("/me")
        place = account.keep(address, token)
        out.print(
            f"Signed in as {me['email']} in {me['workspace']['name']}. The token is stored in {place}.",
            markup=False,
            soft_wrap=True,
        )


@app.command()
def recipes(
    name: Annotated[str, typer.Argument(help="Such as policy; without a name, all are listed")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line")] = False,
) -> None:
    """Lists what a run can do, or shows one recipe with its presets: configs with which a file for `launch` can begin."""
    with told():
        found = [server().get(f"/recipes/{name}")] if name else server().get("/recipes")["items"]
        if as_json:
            print("\n".join(json.dumps(recipe) for recipe in found))
        elif name:
            out.print(Text(f"{found[0]['title']}\n{found[0]['summary']}"), soft_wrap=True)
            for preset in found[0]["presets"]:
                out.print(Text(f"\n{preset['name']}: {preset['title']}. {preset['help']}"), soft_wrap=True)
                out.print(Text(yaml.safe_dump({"config": preset["config"]}, sort_keys=False)), soft_wrap=True)
        else:
            table = Table("recipe", "title", "presets", box=None)
            for recipe in found:
                presets = ", ".join(preset["name"] for preset in recipe["presets"])
                table.add_row(*map(Text, (recipe["name"], recipe["title"], presets)))
            out.print(table)


@runs_app.command("list")
def runs_list(
    state: Annotated[str, typer.Option(help="Such as running, finished, or active")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line")] = False,
) -> None:
    """Lists the newest runs."""
    with told():
        table = Table("id", "run", "experiment", "recipe", "state", "step", box=None)
        for place, run in enumerate(server().all("/runs", state=state or None, limit=min(limit, 200))):
            if place >= limit:
                break
            if as_json:
                print(json.dumps(run))
                continue
            step = str(run["progress"]["step"])
            table.add_row(
                *map(Text, (str(run["id"]), run["name"], run["experiment"]["name"], run["recipe"], run["state"], step))
            )
        if not as_json:
            out.print(table)


@runs_app.command("show")
def runs_show(run: int, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Shows a run: its state, its newest numbers, and its config."""
    with told():
        found = server().get(f"/runs/{run}")
        if as_json:
            print(json.dumps(found, indent=2))
            return
        out.print(_headline(found), soft_wrap=True)
        for key, value in sorted(found["summary"].items()):
            out.print(Text(f"  {key:40} {value:.6g}"), soft_wrap=True)
        out.print(Text(yaml.safe_dump(found["config"], sort_keys=False, allow_unicode=True)), soft_wrap=True)


@runs_app.command("follow")
def runs_follow(
    run: int,
    key: Annotated[list[str] | None, typer.Option(help="A metric to draw; may be repeated")] = None,
) -> None:
    """Draws a run's metrics as they come, until it is over. The exit code is 0 if it finished, 1 if it failed or was stopped."""
    with told():
        known, drawn = server(), dict[str, list[tuple[int, float]]]()
        found, painted = dict[str, Any](), 0.0
        with Live(console=out, auto_refresh=False) as live:
            for message in known.follow(run):
                if message["type"] == "gone":
                    raise ValueError(f"Run {run} is deleted.")
                if message["type"] in ("now", "run"):
                    found = message
                if message["type"] == "metrics" and drawn:
                    _add(message, drawn)
                elif message["type"] in ("now", "metrics", "resync") or found["state"] in OVER:
                    for name in key or _keys(known, run, found):
                        _more(known, run, name, drawn.setdefault(name, []))
                if found["state"] in OVER or time.monotonic() - painted >= DRAW_S:
                    live.update(_picture(found, drawn), refresh=True)
                    painted = time.monotonic()
        raise typer.Exit(0 if found["state"] == "finished" else 1)


def _add(message: dict[str, Any], drawn: dict[str, list[tuple[int, float]]]) -> None:
    """Adds the values of one step. A step that comes again, because the run continued from a checkpoint, replaces its earlier values."""
    for name, points in drawn.items():
        if (value := message["values"].get(name)) is not None:
            while points and points[-1][0] >= message["step"]:
                points.pop()
            points.append((message["step"], value))


def _keys(known: Server, run: int, found: dict[str, Any]) -> list[str]:
    """The metrics that the recipe shows on top, or the first four metrics of a run that was logged from outside."""
    if found["recipe"] == "logged":
        return list(known.get(f"/runs/{run}/curves", max_points=2)["curves"])[:4]
    declared = known.get(f"/recipes/{found['recipe']}/metrics")
    return list(dict.fromkeys(each for each in (declared["headline"], declared["pulse"]) if each))


def _more(known: Server, run: int, key: str, points: list[tuple[int, float]]) -> None:
    """Adds the points of a metric that came after the last known one."""
    last = points[-1][0] if points else None
    points.extend((each["step"], each["value"]) for each in known.points(run, key, last) if each["value"] is not None)


def _headline(found: dict[str, Any]) -> Text:
    at = found["progress"]
    steps = f"{at['step']} of {at['steps_total']}" if at["steps_total"] else str(at["step"])
    reason = f" · {found['state_reason']}" if found["state_reason"] else ""
    return Text(
        f"{found['experiment']['name']} / {found['name']} · {found['state']} · step {steps}{reason}", style="bold"
    )


def _picture(found: dict[str, Any], drawn: dict[str, list[tuple[int, float]]]) -> Group:
    lines: list[Text] = [_headline(found)]
    for key, points in drawn.items():
        newest = f"{points[-1][1]:.6g} at step {points[-1][0]}" if points else "no value yet"
        lines += [Text(f"{key}  {newest}"), *map(Text, curve(points, max(20, min(out.width, 100) - 12)))]
    return Group(*lines)


@runs_app.command("stop")
def runs_stop(run: int) -> None:
    """Saves and ends a run. Its present step is given up."""
    _moved(run, "stop")


@runs_app.command("pause")
def runs_pause(run: int) -> None:
    """Has a run save and give its place to others, until it is resumed. Its present step is given up."""
    _moved(run, "pause")


@runs_app.command("resume")
def runs_resume(run: int) -> None:
    """Resumes a paused, stopped or failed run from its last checkpoint."""
    _moved(run, "resume")


def _moved(run: int, how: str) -> None:
    with told():
        out.print(_headline(server().post(f"/runs/{run}/{how}")), soft_wrap=True)


@claims_app.command("list")
def claims_list() -> None:
    """Lists the methods whose claims can be tested, by the plans that test them."""
    with told():
        for method in server().get("/claims/methods")["items"]:
            for plan in method["plans"]:
                out.print(Text(f"{plan:20} {method['claim']}"), soft_wrap=True)


@claims_app.command("start")
def claims_start(
    plan: Annotated[str, typer.Argument(help="Name of the claim, such as rationale; `claims list` shows all names")],
    seeds: Annotated[int, typer.Option(help="Seeds; every arm runs with each of them")] = 5,
    dataset: Annotated[
        str, typer.Option(help="Name of the dataset; without a dataset and a model, the plan's own task is made")
    ] = "",
    model: Annotated[str, typer.Option(help="Name of the model in the registry")] = "",
    config: Annotated[
        Path | None, typer.Option(help="YAML file with the settings that all arms share; default: those of the plan")
    ] = None,
    key: Annotated[
        str,
        typer.Option(
            help="Key of this request: the study starts only once, even if you repeat the command with the same key"
        ),
    ] = "",
) -> None:
    """Launches every arm of a claim, and prints the number of the study."""
    with told():
        body = {"plan": plan, "seeds": seeds, "dataset": dataset or None, "model": model or None}
        if config is not None:
            body["config"] = _yaml(config)
        print(server().post("/claims", body, key=key or uuid4().hex)["id"])


@claims_app.command("show")
def claims_show(study: int, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Shows how a study stands: its task while that is made, its runs, and the verdict on each claim."""
    with told():
        found = server().get(f"/claims/{study}")
        if as_json:
            print(json.dumps(found, indent=2))
            return
        out.print(Text(f"{found['title']} · {found['finished']} of {found['runs']} runs", style="bold"), soft_wrap=True)
        if making := found["making"]:
            said = making["problem"] or making["phase"]
            if steps := making.get("steps"):
                said += f", {steps['done']:,} of {steps['total']:,} steps"
            out.print(Text(f"  its task: job {making['job']} · {making['state']} · {said}"), soft_wrap=True)
        if found["problem"]:
            out.print(Text(f"  not launched: {found['problem']}", style="red"), soft_wrap=True)
        for claim in found["claims"] if found["runs"] else []:
            out.print(Text(f"  {claim['verdict']}: {claim['claim']}"), soft_wrap=True)


@app.command()
def costs(
    by: Annotated[
        str, typer.Option(help="What a line is: month, project, run (any piece of work) or person")
    ] = "month",
    month: Annotated[str, typer.Option(help="Only this month (UTC), such as 2026-11; default: all time")] = "",
    sort: Annotated[str, typer.Option(help="hours, gpu_hours, tokens, money or minutes: the largest first")] = "hours",
    run: Annotated[int | None, typer.Option(help="Only this run")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line")] = False,
) -> None:
    """Shows what work has cost. A dash means that nothing was measured; +3? means that three more are not known."""
    with told():
        table = Table(by, *(each.replace("_", " ") for each in COSTS), box=None)
        rows = server().costs(by, month=month or None, sort=sort, run=run, limit=min(limit, 200))
        for row in islice(rows, limit):
            if as_json:
                print(json.dumps(row, ensure_ascii=False))
            else:
                table.add_row(Text(row["name"]), *(Text(_amount(row[name])) for name in COSTS))
        if not as_json:
            out.print(table)


def _amount(amount: CostAmount) -> str:
    value = "–" if amount["value"] is None else f"{amount['value']:,.2f}".removesuffix(".00")
    return f"{value} +{amount['unknown']:,}?" if amount["unknown"] else value


@app.command()
def api(
    method: Annotated[str, typer.Argument(help="GET, POST, PATCH or DELETE")],
    path: Annotated[str, typer.Argument(help="Path after /api/v1, with its query, such as /runs?state=running")],
    body: Annotated[str, typer.Argument(help="JSON")] = "",
    key: Annotated[
        str,
        typer.Option(
            help="Key of this request: it takes effect only once, even if you send it again with the same key"
        ),
    ] = "",
) -> None:
    """Sends any request of the API, and prints the answer as JSON."""
    with told():
        given = {"json": _json(body)} if body else {}
        answer = server().ask(method.upper(), f"/api/v1/{path.lstrip('/')}", key=key or None, **given)
        print(json.dumps(answer.json(), indent=2, ensure_ascii=False) if answer.content else "")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"The body is not JSON: {error}") from None


def _yaml(file: Path) -> Any:
    """What the file holds. Raises OSError, and ValueError with the place of the error."""
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        place = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ValueError(f"{file} is not YAML{place}: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{file} is not YAML: {error}") from None


@app.command()
def launch(
    file: Annotated[
        Path,
        typer.Argument(
            help="YAML file with recipe, dataset and config; if needed also with model, experiment, name, not_before, retries and limits"
        ),
    ],
    follow: Annotated[bool, typer.Option(help="Draw the run until it is over")] = False,
    key: Annotated[
        str,
        typer.Option(
            help="Key of this request: the run is launched only once, even if you repeat the command with the same key"
        ),
    ] = "",
) -> None:
    """Launches a run, and prints its number."""
    with told():
        body = _yaml(file)
        if not isinstance(body, dict):
            raise ValueError(f"{file} cannot be launched: it needs recipe, dataset and config.")
        run = server().launch(body, key or uuid4().hex)
        print(run["id"])
    if follow:
        runs_follow(run["id"])


@app.command("import")
def import_file(
    file: Path,
    name: Annotated[str, typer.Option(help="The dataset's name")] = "",
    format: Annotated[str, typer.Option(help="The file's format; by default it is detected")] = "",
    keep_good: Annotated[bool, typer.Option(help="If a file has bad lines, import the good ones")] = False,
    every: Annotated[float, typer.Option(min=0.1)] = FOLLOW_S,
) -> None:
    """Imports a file as a version of a dataset, and waits until it is there."""
    with told():
        known = server()
        job = known.imported(known.import_file(file, name, format=format, keep_good=keep_good), every)
        for line in job["rejected"][:10]:
            err.print(Text(json.dumps(line, ensure_ascii=False), style="yellow"), soft_wrap=True)
        if job["state"] != "finished":
            raise ValueError(job["error"] or f"The import is {job['state']}.")
        version = job["version"] or {}
        for reason, rows in job.get("unsaid", {}).items():
            err.print(Text(f"left out in {rows:,} rows: {reason}", style="yellow"), soft_wrap=True)
        made = {"dataset": job["dataset"], "version": version.get("number"), "counts": job["counts"]}
        print(json.dumps(made, ensure_ascii=False))


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
    """Sends runs that another tool has kept. Prints a line of JSON for each, with what a run here cannot hold; sent again, they are
    the same runs."""
    with told():
        for sent in imports.send(
            server(), path, experiment, every if follow else 0.0, _watched if follow else _nothing
        ):
            print(json.dumps(sent.json(), ensure_ascii=False))


def _watched(sent: imports.Sent) -> None:
    err.print(Text(f"{sent.experiment} / {sent.name}: {sent.points:,} points"), soft_wrap=True)


def _nothing(sent: imports.Sent) -> None:
    pass


@app.command("export")
def export_version(
    dataset: int,
    version: int,
    to: Annotated[Path, typer.Option("--to", "-o", help="File to write; - is the terminal")] = Path("-"),
    format: str = "touchstone",
) -> None:
    """Writes a version of a dataset as JSON Lines."""
    with told():
        address = f"/api/v1/datasets/{dataset}/versions/{version}/export"
        _write(to, lambda out: server().save(address, out, format=format))


@app.command()
def compare(runs: list[int]) -> None:
    """Compares runs: the config fields in which they differ, and their newest numbers."""
    with told():
        found = server().get("/runs/compare", ids=",".join(map(str, runs)))
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
) -> None:
    """Fetches an artifact of a run, such as checkpoints/step-000040; a folder comes as a tar."""
    with told():
        known = server()
        rows = [row for row in known.all(f"/runs/{run}/artifacts", limit=200) if row["present"]]
        if not path:
            for row in rows:
                out.print(Text(f"{row['path']}  {row['bytes']:,} bytes"), soft_wrap=True)
            return
        named = [row for row in rows if row["path"] in (path, f"files/{path}")]
        if not named:
            raise ValueError(f"Run {run} has no artifact {path}.")
        row = named[0]
        target = to / Path(row["path"]).name if to.is_dir() else to
        headers = _write(target, lambda out: known.save(row["download"], out))
        if to.is_dir() and "x-tar" in headers.get("content-type", ""):
            target = target.rename(target.with_name(f"{target.name}.tar"))
        print(target)


@app.command()
def needs(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Lists what needs somebody, and what ended well since yesterday, as the first page does."""
    with told():
        found = server().get("/needs")
        if as_json:
            print(json.dumps(found, indent=2))
            return
        for item in (*found["now"], *found["waiting"], *found["news"]):
            mark, style = TONES[item["tone"]]
            out.print(Text.assemble((f"{mark} {item['title']}", style), f"  {item['href']}"), soft_wrap=True)
            if item["text"]:
                out.print(Text(f"  {item['text']}"), soft_wrap=True)
        if not found["now"]:
            out.print(Text("Nothing needs you."), soft_wrap=True)


@app.command()
def generate(model: int, prompt: str, max_new_tokens: int = 256, temperature: float = 0.0, seed: int = 0) -> None:
    """Has a model of the registry answer, and prints the answer while it is written."""
    with told():
        body = {"prompt": prompt, "max_new_tokens": max_new_tokens, "temperature": temperature, "seed": seed}
        for kind, data in server().events(f"/models/{model}/generate", body):
            if kind == "token":
                print(data["text"], end="", flush=True)
            elif kind == "error":
                raise ValueError(f"{data.get('message') or data.get('code')}")
        print()


@app.command()
def sync() -> None:
    """Sends what programs with `touchstone.wandb` have left on disk while the server was away."""
    with told():
        waits = 0
        for name, left, refused in send_kept(server()):
            waits += left
            print(f"{name}: {'sent' if not left else f'{left} lines are not sent yet'}")
            for why in refused:
                err.print(Text(f"  refused: {why}", style="yellow"), soft_wrap=True)
        if waits:
            raise typer.Exit(2)


def _write(to: Path, fetch: Callable[[BinaryIO], httpx.Headers]) -> httpx.Headers:
    """Writes a file as a whole or not at all. Output to the terminal is written as it comes."""
    if str(to) == "-":
        return fetch(sys.stdout.buffer)
    partial = to.with_name(f"{to.name}.partial")
    try:
        with partial.open("wb") as out:
            headers = fetch(out)
        partial.replace(to)
    finally:
        partial.unlink(missing_ok=True)
    return headers
