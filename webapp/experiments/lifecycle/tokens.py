"""Run tokens: the key of a training process. Each attempt of a run has its own."""

from datetime import timedelta

from django.utils import timezone
from django.utils.crypto import constant_time_compare

from webapp.accounts.models import hash_secret
from webapp.accounts.tokens.derived import derived

from ..models import Run

GRACE = timedelta(hours=1)


def run_token(run: Run) -> str:
    """The token of the run's present attempt.

    Derived, not stored: a worker that submits the same attempt twice hands out the same token, and the database holds
    only its hash. The creation time keeps a token of an erased database from fitting a new run with the same id.
    """
    text = f"{run.id}:{run.attempt}:{run.created_at.isoformat()}"
    return derived("tsr_", "webapp.experiments.run-token", text, run.token_digest)


def digest(run: Run) -> str:
    return hash_secret(run_token(run))


def is_current_token(token: str, run: Run) -> bool:
    """Whether `token` belongs to the run's present attempt. Takes the same time wherever the first difference is.

    It opens nothing from `GRACE` after the run's end on: until then a process sends its last events.
    """
    if run.ended_at is not None and timezone.now() - run.ended_at > GRACE:
        return False
    return bool(run.token_digest) and constant_time_compare(hash_secret(token), run.token_digest)
