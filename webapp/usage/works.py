"""The pieces of work for which the ledger counts."""

from dataclasses import dataclass

from .models import WorkKind


@dataclass(frozen=True)
class MeteredWork:
    """`person` is the id of the person who asked for it, `place` the id of the experiment of a run."""

    workspace: int
    kind: WorkKind
    id: int
    person: int | None = None
    place: int | None = None


# Who erases an account locks its row first and then empties all columns that name the person, and may wait for rows that we hold. So we
# do not wait for the account: while it is being erased, the row names nobody.
PERSON = "(SELECT id FROM accounts_user WHERE id = %(person)s::bigint FOR KEY SHARE SKIP LOCKED)"
"""SQL of the person's id; null if the account is gone or about to be."""
