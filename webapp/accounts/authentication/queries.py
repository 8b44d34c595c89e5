"""The query that every request of a signed-in person starts with."""

from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from django.db.models import Model

from webapp.core.database import prepared

from ..models import Membership, User, Workspace

Row = TypeVar("Row", bound=Model)


def memberships_of(user_id: object) -> list[Membership]:
    """A person's memberships, oldest first, with `user` and `workspace`. A prepared statement, because every request asks for them."""
    counts = [len(model._meta.concrete_fields) for model in (Membership, User)]
    found = []
    for row in prepared.rows(_memberships_sql(), [int(str(user_id))]):
        membership = _built(Membership, row[: counts[0]])
        membership.user = _built(User, row[counts[0] : sum(counts)])
        membership.workspace = _built(Workspace, row[sum(counts) :])
        found.append(membership)
    return found


@cache
def _memberships_sql() -> str:
    tables: tuple[tuple[type[Model], str], ...] = ((Membership, "m"), (User, "u"), (Workspace, "w"))
    columns = ", ".join(f'{alias}."{field.column}"' for model, alias in tables for field in model._meta.concrete_fields)
    membership, user, workspace = (model._meta.db_table for model, _ in tables)
    # the names come from the models, the value is bound
    return f"""
        SELECT {columns} FROM "{membership}" m
        JOIN "{user}" u ON u.id = m.user_id JOIN "{workspace}" w ON w.id = m.workspace_id
        WHERE m.user_id = %s ORDER BY m.id
    """  # noqa: S608


def _built(model: type[Row], row: Sequence[object]) -> Row:
    return model.from_db("default", [field.attname for field in model._meta.concrete_fields], row)
