"""Judges are tried on chosen examples: a draft before it is saved, or two versions against each other."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from trainer.config.fields import Section
from trainer.judges.spec import resolve
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.background.jobs import OPEN, JobKind
from webapp.core.database import locks
from webapp.core.problems import Invalid
from webapp.core.tasks import enqueue
from webapp.inference.models import Endpoint

from ..judges.services import chosen_examples, usable
from ..models import Judge, JudgeVersion, Trial

MOST_TRIED = 20  # this many examples may a draft have
KEPT = 30  # trials that are over, per judge and of drafts without a judge; older ones are deleted
TRIAL = JobKind(
    Trial.objects.select_related("endpoint", "before__endpoint", "after__endpoint", "before__judge"),
    locks.Work.TRIAL,
    "workers.judging.run_trial",
)


class Extra(Section):
    """Inputs that no example has: a rubric to match or improve, a judge's reasons, the verdict that they explain."""

    generated: list[str] = []
    model_reasons: list[str] = []
    rationale: str = ""
    verdict: str = ""


def start_trial(
    membership: Membership,
    *,
    spec: dict[str, Any],
    endpoint: Endpoint,
    examples: Sequence[int],
    extra: Extra | None = None,
    judge: Judge | None = None,
) -> Trial:
    """Queues a draft to be run on examples. Raises ConfigInvalid at the spec's fields, Invalid at `examples`."""
    resolved = resolve(spec)
    usable(endpoint, membership)
    chosen = chosen_examples(membership, examples, MOST_TRIED)
    return _queue(
        membership,
        judge,
        spec=resolved.model_dump(mode="json"),
        endpoint=endpoint,
        examples=[example.pk for example in chosen],
        extra=(extra or Extra()).model_dump(),
    )


def start_comparison(
    membership: Membership, judge: Judge, *, before: JudgeVersion, after: JudgeVersion, extra: Extra | None = None
) -> Trial:
    """Queues two versions to be run on the judge's fixed examples; what is stored is not called again.

    Raises Invalid at `after` or `examples`.
    """
    if before.judge_id != judge.pk or after.judge_id != judge.pk or before.pk == after.pk:
        raise Invalid("These versions cannot be compared.", {"after": "choose two different versions of this judge"})
    if not judge.fixed_examples:
        raise Invalid("No examples are chosen.", {"examples": "choose the judge's fixed examples first"})
    return _queue(
        membership,
        judge,
        before=before,
        after=after,
        examples=judge.fixed_examples,
        extra=(extra or Extra()).model_dump(),
    )


@transaction.atomic
def _queue(membership: Membership, judge: Judge | None, **fields: Any) -> Trial:
    trial = Trial.objects.create(workspace=membership.workspace, judge=judge, created_by=membership.user, **fields)
    over = Trial.objects.filter(workspace=membership.workspace, judge=judge).exclude(state__in=OPEN)
    Trial.objects.filter(id__in=list(over.order_by("-id").values_list("id", flat=True)[KEPT:])).delete()
    audit.record(membership, membership.user, "judge.tried", trial, judge=judge and judge.pk)
    enqueue("workers.judging.run_trial", trial.pk)
    return trial
