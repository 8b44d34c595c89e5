"""All reads of evaluations. Lists cost the same number of queries for any length."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import IntegerField, Max, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from trainer.contracts import Example
from webapp.core.database.paging import Page, page
from webapp.core.problems import Invalid
from webapp.datasets.models import DatasetVersion
from webapp.datasets.queries import stream_canonical

from .models import Case, Evaluation, Recording

MAX_TAGS = 12
State = Evaluation.State


def evaluations(workspace_id: int) -> QuerySet[Evaluation]:
    rows = Evaluation.objects.filter(workspace_id=workspace_id)
    return rows.select_related("workspace", "dataset_version__dataset", "created_by", "recording").defer(
        "recording__content"
    )


def listed(workspace_id: int) -> QuerySet[Evaluation]:
    """The evaluations for lists: of the results only the headline is read."""
    return evaluations(workspace_id).defer("recording__content", "results", "config")


def filtered(workspace_id: int, *, state: str = "", recipe: str = "", words: str = "") -> QuerySet[Evaluation]:
    """Filters the list. Unknown values match nothing rather than everything."""
    rows = listed(workspace_id)
    if state:
        rows = rows.filter(state=state)
    if recipe:
        rows = rows.filter(recipe=recipe)
    return rows.filter(name__icontains=words) if words else rows


def headlines(ids: Sequence[int]) -> dict[int, Any]:
    """evaluation id -> its headline, without reading the rest of the results."""
    rows = Evaluation.objects.filter(id__in=ids, results__isnull=False)
    return dict(rows.values_list("id", "results__headline"))


def facts(evaluation: Evaluation) -> dict[str, Any]:
    """The facts about a finished evaluation that programs get unasked."""
    headline = (evaluation.results or {}).get("headline")
    return {
        "evaluation": evaluation.pk,
        "name": evaluation.name,
        "recipe": evaluation.recipe,
        "benchmark": evaluation.benchmark,
        "headline": headline,
    }


def last_draw(evaluation: Evaluation) -> int:
    """The highest number of a draw among the evaluations of the same benchmark."""
    rows = Evaluation.objects.filter(workspace_id=evaluation.workspace_id, benchmark=evaluation.benchmark)
    draws = rows.annotate(draw=Cast(KeyTextTransform("draw", "config"), IntegerField()))
    return draws.aggregate(last=Max("draw"))["last"] or 0


def recordings(workspace_id: int) -> QuerySet[Recording]:
    return Recording.objects.filter(workspace_id=workspace_id).defer("content").order_by("-id")


def cases(evaluation: Evaluation, tags: Sequence[str] = (), cursor: str | None = None, limit: int = 50) -> Page[Case]:
    """The cases that carry all of `tags`, in their order. Raises Invalid at `tag`, `cursor` or `limit`."""
    if len(tags) > MAX_TAGS or any("\0" in tag for tag in tags):
        raise Invalid("These tags cannot be used as filters.", {"tag": f"at most {MAX_TAGS}, without NUL"})
    rows = Case.objects.filter(evaluation=evaluation)
    return page(rows.filter(tags__contains=list(tags)) if tags else rows, cursor, limit, "number")


def every_case(evaluation: Evaluation) -> Iterator[Case]:
    return Case.objects.filter(evaluation=evaluation).order_by("number").iterator(chunk_size=1000)


def count_cases(evaluation: Evaluation, tags: Sequence[str]) -> int:
    return Case.objects.filter(evaluation=evaluation, tags__contains=list(tags)).count()


def examples(version: DatasetVersion) -> Iterator[Example]:
    """The version's examples in its order. Memory does not grow with their number."""
    for _, line in stream_canonical(version):
        yield Example.model_validate_json(line)
