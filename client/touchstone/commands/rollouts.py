"""Responses that a run has sampled: list, follow one prompt, create a dataset of them."""

from typing import Annotated, Literal

import typer

from .. import terminal
from ..terminal import PAGE, Limit, Lines, group, parse_settings, print_json, print_rows, refusals_printed

app = group("Responses of a run: list, one prompt, notes, a dataset of them.")
Phase = Annotated[Literal["train", "eval", ""], typer.Option(help="train or eval")]
Step = Annotated[int | None, typer.Option(help="Only of this step")]
Filters = Annotated[
    list[str] | None,
    typer.Option("--set", help="KEY=VALUE of the choice, such as best=1, least=0.5 or phase=eval; may be repeated"),
]


@app.command("list")
def rollouts_list(run: int, step: Step = None, phase: Phase = "", limit: Limit = 20, as_json: Lines = False) -> None:
    """Lists responses, newest step first. With --json, each has its prompt, its response and the verdict on every criterion."""
    with refusals_printed():
        rows = terminal.server().rollouts.all(run, step=step, phase=phase or None, page_size=min(limit, 100))
        columns = {
            "step": "step",
            "phase": "phase",
            "prompt": "example_key",
            "reward": "reward",
            "response": "response",
        }
        print_rows(rows, columns, as_json, limit)


@app.command("prompt")
def rollouts_prompt(run: int, example_key: str, phase: Phase = "", as_json: Lines = False) -> None:
    """Shows the rewards of one prompt through training."""
    with refusals_printed():
        rows = terminal.server().rollouts.prompt_steps(run, example_key=example_key, phase=phase or None, page_size=100)
        columns = {"step": "step", "responses": "responses", "mean": "mean", "lowest": "low", "highest": "high"}
        print_rows(rows, columns, as_json)


@app.command("notes")
def rollouts_notes(run: int, step: Step = None, as_json: Lines = False) -> None:
    """Lists what people have noted on tokens."""
    with refusals_printed():
        rows = terminal.server().rollouts.list_notes(run, step=step, page_size=PAGE)
        columns = {
            "id": "id",
            "step": "step",
            "prompt": "example_key",
            "tokens": "quote",
            "note": "text",
            "by": "author",
        }
        print_rows(rows, columns, as_json)


@app.command("preview")
def rollouts_preview(run: int, settings: Filters = None) -> None:
    """Counts what each filter would leave out of a dataset; nothing is written."""
    with refusals_printed():
        print_json(terminal.server().post(f"/runs/{run}/rollouts/dataset/preview", parse_settings(settings)))


@app.command("dataset")
def rollouts_dataset(
    run: int,
    name: Annotated[str, typer.Option(help="The dataset; an existing dataset gets a new version")],
    settings: Filters = None,
) -> None:
    """Creates a dataset from the best responses, and waits until it is there."""
    with refusals_printed():
        known = terminal.server()
        made = known.post(f"/runs/{run}/rollouts/dataset", {"name": name, **parse_settings(settings)})
        job = known.imported({"id": made["import_id"], "state": "queued"})
        if job["state"] != "finished":
            raise ValueError(job["error"] or f"The import is {job['state']}.")
        print_json({"dataset": job["dataset"], "counts": job["counts"]})
