"""Reads of judges, their versions and trials."""

from collections.abc import Collection, Iterable

from django.db.models import Count, Prefetch, QuerySet

from webapp.core.requests.numbers import whole_number
from webapp.datasets.models import Example

from .models import Judge, JudgeVersion, Trial


def judges(workspace_id: int, *, archived: bool = False) -> QuerySet[Judge]:
    """The judges on the list, or the archived ones. Each has `latest`, a list of its newest version, and `version_count`."""
    newest = JudgeVersion.objects.order_by("judge_id", "-number").distinct("judge_id").select_related("endpoint")
    rows = Judge.objects.filter(workspace_id=workspace_id, archived_at__isnull=not archived)
    return rows.annotate(version_count=Count("versions")).prefetch_related(
        Prefetch("versions", queryset=newest, to_attr="latest")
    )


def versions(judge: Judge) -> QuerySet[JudgeVersion]:
    """Newest first."""
    return judge.versions.select_related("judge", "endpoint", "created_by").order_by("-number")


def usable_versions(workspace_id: int, kinds: Iterable[str]) -> QuerySet[JudgeVersion]:
    """Versions of judges of these kinds that are on the list and whose endpoint is there; by name, newest first."""
    rows = JudgeVersion.objects.filter(judge__workspace_id=workspace_id, judge__kind__in=kinds)
    rows = rows.filter(judge__archived_at=None, endpoint__archived_at=None)
    return rows.select_related("judge", "endpoint").order_by("judge__name", "-number")


def version_named(workspace_id: int, text: str) -> JudgeVersion | None:
    """The version that people write as `Grader v2`; None if its judge is not on the list or its endpoint is archived."""
    name, _, number = text.rpartition(" v")
    rows = JudgeVersion.objects.filter(
        judge__workspace_id=workspace_id, judge__name=name, number=whole_number(number, 9) or 0
    )
    rows = rows.filter(judge__archived_at=None, endpoint__archived_at=None)
    return rows.select_related("judge", "endpoint").first()


def versions_named(workspace_id: int, texts: Collection[str]) -> dict[str, JudgeVersion]:
    """Like `version_named`, for several texts with one query; those that name nothing are left out."""
    rows = JudgeVersion.objects.filter(
        judge__workspace_id=workspace_id, judge__name__in={text.rpartition(" v")[0] for text in texts}
    )
    rows = rows.filter(judge__archived_at=None, endpoint__archived_at=None).select_related("judge", "endpoint")
    return {str(row): row for row in rows if str(row) in texts}


def why_not_named(workspace_id: int, text: str) -> str:
    """The reason why `version_named` finds nothing under `text`, and what helps."""
    name, _, number = text.rpartition(" v")
    rows = JudgeVersion.objects.filter(
        judge__workspace_id=workspace_id, judge__name=name, number=whole_number(number, 9) or 0
    )
    version = rows.select_related("judge", "endpoint").first()
    if version is None:
        return f"no judge version is called {text!r}; name it with its version, such as 'Grader v2'"
    if version.judge.archived_at:
        return f"{text!r} is archived; restore it on its page, or name another judge"
    return f"{text!r} cannot be asked, because its endpoint {version.endpoint.name!r} is archived. Restore the endpoint, or name another judge"


def trials(judge: Judge) -> QuerySet[Trial]:
    """Newest first, without their results."""
    return judge.trials.select_related("before", "after", "created_by").defer("results", "spec").order_by("-id")


def fixed_examples(judge: Judge) -> list[Example]:
    """The examples on which the judge's versions are compared, in their order, without those that are gone."""
    found = Example.objects.only("id", "key", "excerpt").in_bulk(judge.fixed_examples)
    return [found[each] for each in judge.fixed_examples if each in found]
