"""What a run has sampled becomes a dataset: prompts with their responses and rewards, for best-of-n tuning and the like."""

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any, NamedTuple

from django.db.models.fields.json import KeyTextTransform

from trainer.contracts.rollout_examples import Gathered, Sampled, Wanted, gather
from webapp.accounts.models import Membership
from webapp.core.numbers import whole
from webapp.core.problems import Invalid
from webapp.datasets import services as datasets
from webapp.datasets.models import ImportJob
from webapp.judging.queries import examples_by_key

from .models import Rollout, Run

MOST = 20_000
"""Responses at once: what a request reads within seconds."""
_FORMAT = "touchstone"


class Started(NamedTuple):
    """The import that makes the version, and what it is made of."""

    job: ImportJob
    gathered: Gathered


def start(membership: Membership, run: Run, wanted: Wanted, name: str) -> Started:
    """An import of the wanted responses into dataset `name`, queued for a worker.

    Raises Invalid at `steps` where these are more than MOST, at `wanted` where no response is left, and as `start_import`.
    """
    _check(wanted)
    rows = _rows(run, wanted)
    if (count := rows.count()) > MOST:
        raise Invalid(
            "These are too many responses at once.",
            {"steps": f"hold {count:,} responses, and {MOST:,} are taken at once; name fewer steps"},
        )
    sampled = list(_sampled(rows))
    known = examples_by_key(run.dataset_version, [each.example_key for each in sampled])
    gathered = gather(sampled, known, wanted, f"{run.model.name}, run {run.pk}")
    if not gathered.examples:
        why = f"; {gathered.left_out_words}" if gathered.left_out else ""
        raise Invalid("No response is left.", {"wanted": f"of {count:,} responses none is left{why}"})
    file_name = f"rollouts-of-run-{run.pk}.jsonl"
    with datasets.uploaded(file_name, BytesIO(_lines(gathered))) as path:
        job = datasets.start_import(membership, path, name=name, file_name=file_name, format=_FORMAT)
    return Started(job, gathered)


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


def _lines(gathered: Gathered) -> bytes:
    return "".join(f"{example.canonical()}\n" for example in gathered.examples).encode()
