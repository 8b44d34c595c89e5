"""The choices of a form: versions of datasets, models, experiments; and the first value of each."""

from django.db.models import QuerySet

from trainer.config import Recipe, RecipeConfig
from webapp.core.requests.numbers import whole_number
from webapp.datasets import queries
from webapp.datasets.models import DatasetVersion
from webapp.datasets.versions import training_counts

from .fit import fit

MOST_OFFERED = 200
MOST_TRIED = 50  # datasets looked at for one that fits


def versions(workspace_id: int, keep: DatasetVersion | None = None) -> QuerySet[DatasetVersion]:
    """The versions to choose from, and `keep`: by name, newest first."""
    return queries.offered_versions(workspace_id, keep).order_by("dataset__name", "-number")


def named_version(workspace_id: int, text: str) -> DatasetVersion | None:
    """`demo` is the newest version of the dataset of this name, `7` of dataset 7, `7:2` its version 2; else None. An archived dataset can
    be named too."""
    rows = DatasetVersion.objects.filter(dataset__workspace_id=workspace_id).select_related("dataset")
    rows = rows.order_by("dataset__name", "-number")
    dataset, _, number = text.partition(":")
    if (which := whole_number(dataset)) is not None and (version := whole_number(number, 9)) is not None:
        return rows.filter(dataset_id=which, number=version).first()
    named = rows.filter(dataset__name=text).first() if text else None
    return named or (rows.filter(dataset_id=which).first() if which is not None and not number else None)


def newest_version(workspace_id: int) -> DatasetVersion | None:
    """The newest version of the newest dataset."""
    rows = queries.offered_versions(workspace_id)
    return rows.order_by("-dataset_id", "-number").first()


def fitting_version(workspace_id: int, recipe: Recipe, config: RecipeConfig | None = None) -> DatasetVersion | None:
    """The newest version of the newest dataset that the recipe can train on: with this config (without one, with its
    defaults), else with some other config, else without an evaluation. The newest version of the newest dataset if no
    version is known to fit.

    Large versions that are not counted yet are skipped.
    """
    newest = queries.offered_versions(workspace_id)
    rows = list(newest.order_by("-dataset_id", "-number").distinct("dataset_id")[:MOST_TRIED])
    budget, second, third = training_counts.AT_ONCE, None, None
    plain = config or recipe.schema.model_validate({})
    for row in rows:
        if training_counts.stored_counts(row) is None:
            budget -= row.counts.get("examples", 0)
            if budget < 0:
                continue
        counts = training_counts.count_now(row)
        if (found := fit(recipe, counts, config)).ok:
            if found.held_out and not any(plain.data_problems(counts)):
                return row
            second, third = second or (row if found.held_out else None), third or row
    return second or third or (rows[0] if rows else None)
