"""Collects what the installation holds about a person, as named lists of rows that JSON can hold."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import F

from webapp.accounts.models import User
from webapp.annotation import kinds
from webapp.annotation.agreement.person_figures import Figures
from webapp.annotation.agreement.raters import raters
from webapp.annotation.models import AgreementReport, Participant

from .data_inventory import HOLDINGS, Erasure, Holding

AT_A_TIME = 1_000


@dataclass(frozen=True)
class DataPart:
    """`file` without its ending; `rows` are read as they are asked for."""

    file: str
    about: str
    erasure: Erasure
    rows: Iterable[dict[str, Any]]


def parts(user: User) -> Iterator[DataPart]:
    """All parts of an export, in the order of its index."""
    for holding in HOLDINGS:
        if holding.file:
            rows = _answers(holding, user) if holding.model == "annotation.Answer" else _rows(holding, user)
            yield DataPart(holding.file, holding.about, holding.erasure, rows)
    about = "Your pseudonym in each project, and what was counted of your work there."
    yield DataPart("figures", about, Erasure.PSEUDONYM, _figures(user))


def _rows(holding: Holding, user: User) -> Iterator[dict[str, Any]]:
    return holding.values(user).iterator(chunk_size=AT_A_TIME)


def _answers(holding: Holding, user: User) -> Iterator[dict[str, Any]]:
    """Answers as the person gave them: in letters, not with the ids of responses, which nobody who answers may see."""
    how = {"_kind": "project__kind", "_subject": "assignment__task__subject", "_order": "assignment__order"}
    for row in holding.values(user).annotate(**{name: F(path) for name, path in how.items()}).iterator(AT_A_TIME):
        kind, subject, order = (row.pop(name) for name in how)
        yield row | {"kind": kind, "content": kinds.to_shown(kind, row["content"], subject, order)}


def _figures(user: User) -> Iterator[dict[str, Any]]:
    for mine in Participant.objects.filter(user=user).select_related("project").order_by("pk"):
        reports = AgreementReport.objects.filter(project=mine.project).values_list("people", flat=True)
        kept = (reports.first() or {}).get(str(user.pk))
        total = Figures.unpacked(kept["total"]) if kept else Figures()
        yield {
            "project_id": mine.project_id,
            "project_name": mine.project.name,
            "pseudonym": raters(mine.project)[user.pk].pseudonym,
            "answers": total.done,
            "median_seconds": total.median_seconds,
            "faster_than_one_can_read": total.fast._asdict(),
            "equal_to_others": total.agreement._asdict(),
        }
