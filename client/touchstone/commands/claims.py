"""Claims of papers: test one, and see its results."""

from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer

from .. import terminal
from ..terminal import AsJson, Key, Lines, group, print_json, print_rows, refusals_printed, say

app = group("Claims of papers: test one, and see its results.")


@app.command("list")
def claims_list(as_json: Lines = False) -> None:
    """Lists the methods whose claims can be tested, by the plans that test them."""
    with refusals_printed():
        methods = terminal.server().claims.methods()["items"]
        if as_json:
            print_rows(methods, {}, as_json=True)
            return
        for method in methods:
            for plan in method["plans"]:
                say(f"{plan:20} {method['claim']}")


@app.command("start")
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
    key: Key = "",
) -> None:
    """Launches every arm of a claim, and prints the number of the study."""
    with refusals_printed():
        body = {"plan": plan, "seeds": seeds, "dataset": dataset or None, "model": model or None}
        if config is not None:
            body["config"] = terminal.yaml_of(config)
        print(terminal.server().post("/claims", body, key=key or uuid4().hex)["id"])


@app.command("show")
def claims_show(study: int, as_json: AsJson = False) -> None:
    """Shows the state of a study: its task while that is made, its runs, and the verdict on each claim."""
    with refusals_printed():
        found = terminal.server().claims.study(study)
        if as_json:
            print_json(found)
            return
        say(f"{found['title']} · {found['finished']} of {found['runs']} runs", "bold")
        if making := found["making"]:
            said = making["problem"] or making["phase"]
            if steps := making.get("steps"):
                said += f", {steps['done']:,} of {steps['total']:,} steps"
            say(f"  its task: job {making['job']} · {making['state']} · {said}")
        if found["problem"]:
            say(f"  not launched: {found['problem']}", "red")
        for claim in found["claims"] if found["runs"] else []:
            say(f"  {claim['verdict']}: {claim['claim']}")
