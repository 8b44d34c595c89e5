"""The publications of a project, with the fate of every label."""

from typing import Any

from django.db.models import QuerySet

from webapp.annotation.models import Project, Publication, PublishedCase
from webapp.datasets.models import DatasetVersion

Fate, Reason = PublishedCase.Fate, PublishedCase.Reason
SHOWN = 10  # publications on the page of answers


def publications(project: Project) -> QuerySet[Publication]:
    """Newest first."""
    return project.publications.select_related("version__dataset", "made_by").order_by("-id")


def publications_without_fates(project: Project) -> list[DatasetVersion]:
    """Versions published before the fate of labels was recorded, newest first."""
    made = {"from": "annotation", "project": project.pk}
    found = project.version.dataset.versions.filter(lineage__contains=made, publications=None)
    return list(found.order_by("-number")[:SHOWN])


def labels(made: Publication) -> list[dict[str, Any]]:
    """For each fate the number of labels, and the reasons."""
    path = f"/api/v1/projects/{made.project_id}/publications/{made.pk}/cases"
    found = []
    for fate in Fate:
        counted = made.counts.get(fate.value, {})
        reasons = [
            {
                "reason": reason,
                "label": str(Reason(reason).label) if reason else "",
                "count": number,
                "cases": f"{path}?fate={fate.value}&reason={reason}",
            }
            for reason, number in sorted(counted.items())
        ]
        count = sum(counted.values())
        told = {"fate": fate.value, "label": str(fate.label), "count": count, "cases": f"{path}?fate={fate.value}"}
        found.append({**told, "reasons": [each for each in reasons if each["reason"]]})
    return found


def base_number(made: Publication) -> int:
    """The number of the version on which the publication was based. The annotated version of a project that grows may be a later one now."""
    lineage = made.version.lineage
    ours = lineage.get("from") == "annotation" and lineage.get("project") == made.project_id
    number: int = made.choice.get("base") or (lineage["base"] if ours else made.project.version.number)
    return number


def publication_json(made: Publication) -> dict[str, Any]:
    """A publication as the API returns it."""
    version = made.version
    return {
        "publication": made.pk,
        "dataset": version.dataset_id,
        "version": version.number,
        "version_id": version.pk,
        "digest": version.digest,
        "counts": version.counts,
        "base": base_number(made),
        "choice": made.choice,
        "labels": labels(made),
        "answers": made.counts["answers"],
        "untouched": made.counts["untouched"],
        "left_out": made.counts["left_out"],
    }


def cases(made: Publication, fate: str = "", reason: str = "", after: int = 0, limit: int = 50) -> list[PublishedCase]:
    """Up to `limit` labels after the id `after`; of one fate and one reason if these are given."""
    rows = made.cases.filter(id__gt=after)
    rows = rows.filter(fate=fate) if fate else rows
    rows = rows.filter(reason=reason) if reason else rows
    return list(rows.order_by("id")[:limit])


def bases(project: Project) -> list[DatasetVersion]:
    """The versions on which a publication can be based: the annotated version first, then the others, newest first."""
    others = project.version.dataset.versions.exclude(pk=project.version_id).order_by("-number")
    return [project.version, *others[:50]]
