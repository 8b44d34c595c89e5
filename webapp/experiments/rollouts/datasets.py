"""Creates a dataset of a run's responses: prompts with their responses and rewards, for best-of-n tuning and the like."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTextTransform, KeyTransform

from trainer.contracts.plurals import with_noun
from trainer.contracts.rollout_examples import (
    LEFT_OUT,
    FilterStep,
    SampledResponse,
    WantedResponses,
    filter_responses,
    gather,
)
from trainer.rewards.rejection import form_fault, problems, share_right
from webapp.accounts.models import Membership
from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number
from webapp.datasets.ingest import services as imports
from webapp.datasets.ingest.generated_files import SOURCES, Heard
from webapp.datasets.models import DatasetVersion, ImportJob
from webapp.datasets.queries import examples_by_key

from .. import recipe_metrics
from ..models import Rollout, Run
from ..queries import runs

MOST = 200_000
"""The most responses of one dataset, because their texts are in a worker's memory together."""
MOST_SHOWN = 20_000
"""The most responses that a preview reads, because somebody waits for it."""
KIND = "run"
"""`origin["from"]` of such an import, and `lineage["from"]` of the version that it makes."""


def start(membership: Membership, run: Run, wanted: WantedResponses, name: str) -> ImportJob:
    """An import of the wanted responses into dataset `name`: a worker gathers them and reads them in.

    Raises Invalid at `run` if its questions are not prompts of the data, at `steps` if they have no response or more than MOST, and as
    `start_gathering`.
    """
    if not asked_the_data(run):
        reason = "was asked about pairs of answers, so its prompts are questions about pairs, not prompts of the data"
        raise Invalid("These responses cannot become a dataset.", {"run": reason})
    check(run, wanted, MOST)
    origin = {"from": KIND, "run": run.pk, "name": f"{run.experiment.name}, {run}", "wanted": asdict(wanted)}
    return imports.start_gathering(membership, origin, name=name, file_name=f"rollouts-of-run-{run.pk}.jsonl")


def asked_the_data(run: Run) -> bool:
    """Whether the run was asked prompts of its data, and not questions that a task made of them."""
    recipe = recipe_metrics.recipe_of(run.recipe)
    return recipe is None or not getattr(recipe.schema, "asks_of_pairs", False)


def _gathered(job: ImportJob, heard: Heard) -> tuple[Iterator[str], dict[str, Any]]:
    run = runs(job.workspace_id).filter(pk=job.origin["run"]).first()
    if run is None:
        raise Invalid("The run was deleted before its responses were gathered.")
    wanted = _stored(job.origin["wanted"])
    sampled = list(_counted(_sampled(_rows(run, wanted), wanted), heard))
    known = examples_by_key(run.data, list({each.example_key for each in sampled}))
    found = gather(sampled, known, wanted, f"{run.base.name}, run {run.pk}", form_fault(wanted))
    if not found.examples:
        why = f"; {found.left_out_words}" if found.left_out else ""
        raise Invalid(
            "No response is left.", {"wanted": f"None of {with_noun(len(sampled), 'responses')} is left{why}."}
        )
    facts = {"prompts": len(found.examples), "responses": found.responses, "left_out": dict(found.left_out)}
    return (each.canonical() for each in found.examples), {**facts, "left_out_words": found.left_out_words}


def _stored(given: Mapping[str, Any]) -> WantedResponses:
    """The filters as an import stores them. JSON has no tuples, and an import of an earlier version has fewer filters."""
    known = {each.name for each in fields(WantedResponses)}
    kept = {name: value for name, value in given.items() if name in known}
    return WantedResponses(**{**kept, "without": tuple(kept.get("without", ()))})


def _counted(rows: Iterator[SampledResponse], heard: Heard) -> Iterator[SampledResponse]:
    for number, each in enumerate(rows, 1):
        if number % 500 == 0:
            heard(number)
        yield each


def made_of(run: Run) -> QuerySet[DatasetVersion]:
    """The versions with the run's responses, newest first."""
    rows = DatasetVersion.objects.filter(dataset__workspace_id=run.experiment.workspace_id)
    return rows.filter(lineage__from=KIND, lineage__run=run.pk).select_related("dataset").order_by("-id")


@dataclass(frozen=True)
class Preview:
    """The effect of the filters: every step with its cases. `prompts`: the number of prompts of the responses that stay."""

    responses: int
    stayed: int
    prompts: int
    steps: list[FilterStep]

    def step(self, key: str) -> FilterStep | None:
        return next((step for step in self.steps if step.key == key), None)


def preview(run: Run, wanted: WantedResponses) -> Preview:
    """Makes nothing. Raises Invalid as `start` does, and if there are more than MOST_SHOWN responses."""
    check(run, wanted, MOST_SHOWN)
    sampled = list(_sampled(_rows(run, wanted), wanted))
    members = run.data.members.filter(example__key__in={each.example_key for each in sampled})
    kept, steps = filter_responses(sampled, members.values_list("example__key", flat=True), wanted, form_fault(wanted))
    return Preview(len(sampled), len(kept), len({each.example_key for each in kept}), steps)


def check(run: Run, wanted: WantedResponses, most: int) -> None:
    """Raises Invalid with the problems of the filters or of the steps, by field."""
    if found := dict(problems(wanted)):
        raise Invalid("The filters cannot be read.", found)
    count = _rows(run, wanted).count()
    if not count:
        raise Invalid("There is no such response.", {"steps": "have no response that was sampled"})
    if count > most:
        reason = f"hold {with_noun(count, 'responses')}, and {most:,} are taken at once; name fewer steps"
        raise Invalid("These are too many responses at once.", {"steps": reason})


def wanted_of(form: Mapping[str, str], on: Sequence[str] | None = None) -> WantedResponses:
    """The filters and steps of a form. `on`: the filters that are switched on; None if there are no switches. Raises Invalid at a field
    that cannot be read."""
    given: dict[str, Any] = {
        "phase": form.get("phase", "train"),
        "whole": "whole" in form,
        "protocol": "protocol" in form,
    }
    given |= {name: form.get(name, "").strip() for name in ("form", "part", "protocol_part")}
    given["form_of"] = form.get("form_of", "")
    given |= {name: _number(form, name) or 0 for name in ("first", "best", "shortest")}
    given |= {"last": _number(form, "last"), "least": _decimal(form, "least"), "correct": _decimal(form, "correct")}
    if on is not None:
        given |= {"whole": True, "without": tuple(key for key in SWITCHED if key not in on)}
    return WantedResponses(**given)


SWITCHED = tuple(key for key in LEFT_OUT if key != "no_example")
"""Filters that a person may leave out."""


def _decimal(form: Mapping[str, str], name: str) -> float | None:
    text = form.get(name, "").strip().replace(",", ".")
    try:
        return float(text) if text else None
    except ValueError as error:
        raise Invalid("The value is not a number.", {name: "must be a number, or empty"}) from error


def _number(form: Mapping[str, str], name: str) -> int | None:
    text = form.get(name, "").strip()
    number = whole_number(text, 9) if text else None
    if text and number is None:
        raise Invalid("This is not a whole number.", {name: "must be a whole number, or empty"})
    return number


def _rows(run: Run, wanted: WantedResponses) -> Any:
    rows = Rollout.objects.filter(run=run, phase=wanted.phase, step__gte=wanted.first)
    return rows if wanted.last is None else rows.filter(step__lte=wanted.last)


def _sampled(rows: Any, wanted: WantedResponses) -> Iterator[SampledResponse]:
    """The rollouts without the columns of tokens, which are most of a rollout, and with judges' verdicts only if a filter reads them."""
    made: dict[str, Any] = {
        name: KeyTextTransform(name, "content") for name in ("response", "finish_reason", "scaffold_shown", "hint")
    }
    if wanted.does("incorrect"):
        made["criteria"] = KeyTransform("criteria", "content")
    names = ("example_key", "step", "group", "index", "reward", "part_values", *made)
    for row in rows.annotate(**made).order_by("step", "group", "index").values(*names).iterator():
        criteria = row.get("criteria") or ()
        verdicts = [
            (each["points"], each["verdict"]["met"], each["verdict"].get("source", "verifier")) for each in criteria
        ]
        yield SampledResponse(
            **{name: row[name] for name in ("example_key", "step", "group", "index", "reward")},
            text=row["response"],
            cut=row["finish_reason"] == "length",
            scaffold_shown=int(row["scaffold_shown"] or 0),
            hint=float(row["hint"] or 0.0),
            right=share_right(verdicts),
            parts=row["part_values"],
            failed=row["finish_reason"] == "error",
        )


SOURCES[KIND] = _gathered
