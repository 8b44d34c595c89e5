"""What a run has sampled becomes a dataset: prompts with their responses and rewards, for best-of-n tuning and the like."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTextTransform

from trainer.contracts.counted import counted
from trainer.contracts.rollout_examples import Sampled, Wanted, gather
from webapp.accounts.models import Membership
from webapp.core.numbers import whole
from webapp.core.problems import Invalid
from webapp.datasets import services as datasets
from webapp.datasets.ingest.generated_files import SOURCES, Heard
from webapp.datasets.models import DatasetVersion, ImportJob
from webapp.judging.queries import examples_by_key

from .. import recipe_metrics
from ..models import Rollout, Run
from ..queries import runs

MOST = 200_000
"""Responses at once: their texts are in a worker's memory together."""
KIND = "run"
"""`origin["from"]` of such an import, and `lineage["from"]` of the version that it makes."""


def start(membership: Membership, run: Run, wanted: Wanted, name: str) -> ImportJob:
    """An import of the wanted responses into dataset `name`: a worker gathers them and reads them in.

    Raises Invalid at `run` where its questions are none of the data, at `steps` where these hold none, or more than MOST, and as `start_gathering`.
    """
    if not asked_the_data(run):
        reason = "was asked about pairs of answers; its questions are no prompts of the data"
        raise Invalid("These responses make no dataset.", {"run": reason})
    _check(wanted)
    count = _rows(run, wanted).count()
    if not count:
        raise Invalid("There is no response.", {"steps": "hold none that was sampled"})
    if count > MOST:
        reason = f"hold {counted(count, 'responses')}, and {MOST:,} are taken at once; name fewer steps"
        raise Invalid("These are too many responses at once.", {"steps": reason})
    origin = {"from": KIND, "run": run.pk, "name": f"{run.experiment.name}, {run}", "wanted": asdict(wanted)}
    return datasets.start_gathering(membership, origin, name=name, file_name=f"rollouts-of-run-{run.pk}.jsonl")


def asked_the_data(run: Run) -> bool:
    """Whether what the run was asked are prompts of its data, and no questions that a task made of them."""
    recipe = recipe_metrics.recipe_of(run.recipe)
    return recipe is None or not getattr(recipe.schema, "asks_of_pairs", False)


def _gathered(job: ImportJob, heard: Heard) -> tuple[Iterator[str], dict[str, Any]]:
    run = runs(job.workspace_id).filter(pk=job.origin["run"]).first()
    if run is None:
        raise Invalid("The run was deleted before its responses were gathered.")
    wanted = Wanted(**job.origin["wanted"])
    sampled = list(_counted(_sampled(_rows(run, wanted)), heard))
    known = examples_by_key(run.data, list({each.example_key for each in sampled}))
    found = gather(sampled, known, wanted, f"{run.base.name}, run {run.pk}")
    if not found.examples:
        why = f"; {found.left_out_words}" if found.left_out else ""
        raise Invalid("No response is left.", {"wanted": f"Of {counted(len(sampled), 'responses')} none is left{why}."})
    facts = {"prompts": len(found.examples), "responses": found.responses, "left_out": dict(found.left_out)}
    return (each.canonical() for each in found.examples), {**facts, "left_out_words": found.left_out_words}


def _counted(rows: Iterator[Sampled], heard: Heard) -> Iterator[Sampled]:
    for number, each in enumerate(rows, 1):
        if number % 500 == 0:
            heard(number)
        yield each


def made_of(run: Run) -> QuerySet[DatasetVersion]:
    """The versions that hold its responses, newest first."""
    rows = DatasetVersion.objects.filter(dataset__workspace_id=run.experiment.workspace_id)
    return rows.filter(lineage__from=KIND, lineage__run=run.pk).select_related("dataset").order_by("-id")


def wanted_of(form: Mapping[str, str]) -> Wanted:
    """What the form on the rollouts' page asks for. Raises Invalid at the field that cannot be read."""
    least = form.get("least", "").strip().replace(",", ".")
    try:
        value = float(least) if least else None
    except ValueError as error:
        raise Invalid("The least reward is not a number.", {"least": "must be a number, or empty"}) from error
    phase: Any = form.get("phase", "train")
    numbers = {name: _number(form, name) for name in ("first", "last", "best")}
    return Wanted(phase, numbers["first"] or 0, numbers["last"], numbers["best"] or 0, value, "whole" in form)


def _number(form: Mapping[str, str], name: str) -> int | None:
    text = form.get(name, "").strip()
    number = whole(text, 9) if text else None
    if text and number is None:
        raise Invalid("That is not a whole number.", {name: "must be a whole number, or empty"})
    return number


def _check(wanted: Wanted) -> None:
    if wanted.phase not in ("train", "eval"):
        raise Invalid("The phase is not known.", {"phase": "must be train or eval"})
    if wanted.last is not None and wanted.last < wanted.first:
        raise Invalid("The steps end before they begin.", {"last": f"must be {wanted.first} or more"})
    if wanted.least is not None and wanted.least != wanted.least:
        raise Invalid("The least reward is not a number.", {"least": "must be a number, or empty"})


def _rows(run: Run, wanted: Wanted) -> Any:
    rows = Rollout.objects.filter(run=run, phase=wanted.phase, step__gte=wanted.first)
    return rows if wanted.last is None else rows.filter(step__lte=wanted.last)


def _sampled(rows: Any) -> Iterator[Sampled]:
    """Without the columns of tokens, which are most of a rollout."""
    texts = {name: KeyTextTransform(name, "content") for name in ("response", "finish_reason", "scaffold_shown")}
    names = ("example_key", "step", "group", "index", "response", "reward", "finish_reason", "scaffold_shown")
    found = rows.annotate(**texts).order_by("step", "group", "index").values_list(*names)
    for key, step, group, index, text, reward, finish, shown in found.iterator():
        yield Sampled(key, step, group, index, text, reward, finish == "length", int(shown or 0))


SOURCES[KIND] = _gathered
