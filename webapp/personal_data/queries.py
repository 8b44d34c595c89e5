"""Reads over exports of personal data."""

from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils import timezone

from trainer.contracts import plurals as words
from webapp.accounts.models import User

from .data_inventory import HOLDINGS, Erasure, Holding
from .models import DataExport


@dataclass(frozen=True)
class ErasureFate:
    """The effect of an erasure: kinds of rows with their number in words, and how many other rows."""

    deleted: list[str]
    kept: list[str]
    emptied: int
    logged: int


def own_exports(user: User) -> "QuerySet[DataExport]":
    """The exports that the person asked for themselves and that have not ended, newest first."""
    return DataExport.objects.filter(user=user, digest="", expires_at__gt=timezone.now()).order_by("-pk")


def of_person(user: User) -> "QuerySet[DataExport]":
    """All exports of the person that have not ended, newest first."""
    rows = DataExport.objects.filter(user=user, expires_at__gt=timezone.now())
    return rows.select_related("asked_by").order_by("-pk")


def fate(person: User) -> ErasureFate:
    """The effect of an erasure of the account now. It takes one query for each kind of row."""

    def counted(erasure: Erasure) -> list[tuple[Holding, int]]:
        return [(each, each.rows(person).count()) for each in HOLDINGS if each.erasure == erasure]

    def named(erasure: Erasure) -> list[str]:
        rows = [(each, count) for each, count in counted(erasure) if each.source is not User and count]
        return [words.with_noun(count, each.file.replace("_", " ")) for each, count in rows]

    emptied = sum(count for _, count in counted(Erasure.EMPTIED))
    logged = sum(count for each, count in counted(Erasure.LOGGED) if each.direct)
    return ErasureFate(named(Erasure.DELETED), named(Erasure.PSEUDONYM), emptied, logged)
