"""The token with which the process of a job proves its identity.

The token is derived, not stored: if a job is submitted twice, the token is the same.
"""

from django.utils.crypto import constant_time_compare

from webapp.accounts.models import hash_secret
from webapp.accounts.tokens.derived import derived

from .models import WeightsJob


def token(job: WeightsJob) -> str:
    """The token of the present attempt."""
    text = f"{job.pk}:{job.attempt}:{job.created_at.isoformat()}"
    return derived("tsw_", "webapp.weights.token", text, job.token_digest)


def digest(job: WeightsJob) -> str:
    return hash_secret(token(job))


def is_current_token(given: str, job: WeightsJob) -> bool:
    return bool(job.token_digest) and constant_time_compare(hash_secret(given), job.token_digest)
