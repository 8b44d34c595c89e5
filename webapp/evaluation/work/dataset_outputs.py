"""Makes a version of a dataset from what models generated, and a probe beside a version from how often they were right."""

from collections.abc import Sequence
from typing import Any

from webapp.accounts.models import Membership
from webapp.core.problems import Invalid, Problem
from webapp.datasets import probe_services
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.probe_services import MeasuredProbe
from webapp.datasets.versions import services as datasets

from .. import access
from ..models import Evaluation
from ..recipes import RECIPES
from ..recipes.base import ModelPassRates, RecipeOutcome
from ..recipes.policies.generate import SAMPLING


def deliver(evaluation: Evaluation, outcome: RecipeOutcome) -> None:
    """Makes the version or the probes, and says so in the report. If something prevents it, the report says what, and is kept.

    Each is made once, even if several workers come here.
    """
    if outcome.pass_rates and evaluation.dataset_version:
        outcome.report.made = _probed(evaluation, evaluation.dataset_version, outcome.pass_rates)
        return
    field = RECIPES[evaluation.recipe].makes
    if not field or not (name := evaluation.config.get(field)):
        return
    try:
        outcome.report.made = _delivered(evaluation, name, outcome)
    except Problem as problem:
        outcome.report.made = {"problem": problem.sentence}


def _probed(evaluation: Evaluation, version: DatasetVersion, found: Sequence[ModelPassRates]) -> dict[str, Any]:
    """Pass rates become probes beside the version, which itself stays as it is."""
    for place, each in enumerate(found):
        measured = MeasuredProbe(evaluation.pk, place, each.model, each.samples, each.threshold, each.counts)
        probe_services.store(version, evaluation.created_by, measured)
    made = {"dataset": version.dataset_id, "name": version.dataset.name, "version": version.number}
    return {**made, "pass_rates": True}


def _delivered(evaluation: Evaluation, name: str, outcome: RecipeOutcome) -> dict[str, Any]:
    rows = Membership.objects.filter(workspace=evaluation.workspace, user=evaluation.created_by, user__is_active=True)
    membership = rows.select_related("user", "workspace").first() if evaluation.created_by else None
    if membership is None or not membership.may(access.WRITER):
        raise Invalid(
            "The person who asked for the dataset may no longer create datasets in this workspace. Run the evaluation again."
        )
    dataset = Dataset.objects.filter(workspace=evaluation.workspace, name=name).first()
    dataset = dataset or datasets.create_dataset(membership, name)
    version = datasets.new_version(membership, dataset, outcome.records, None, _lineage(evaluation, outcome))
    return {"dataset": dataset.pk, "name": dataset.name, "version": version.number}


def _lineage(evaluation: Evaluation, outcome: RecipeOutcome) -> dict[str, Any]:
    return {
        "from": "generated",
        "evaluation": evaluation.pk,
        "model": ", ".join(entry.name for entry in outcome.report.entries),
        "prompts": str(evaluation.dataset_version),
        "sampling": {name: evaluation.config[name] for name in SAMPLING},
    }
