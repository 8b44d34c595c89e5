"""Budgets of judges in a run: read, and raised while the run waits."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Invalid
from webapp.evaluation.licences import licence
from webapp.evaluation.licences.licence import Licence
from webapp.judging.models import JudgeVersion

from ..live import broadcasts
from ..models import Run, RunJudge
from . import grants

KEEP: Any = object()
"""A limit that is not changed; None lifts it."""
MOST_MONEY = Decimal(10**7)
_when_spent: list[Callable[[Run], None]] = []


@dataclass(frozen=True)
class Spent:
    """Tokens of prompts and replies; money in the unit of the endpoints' prices."""

    tokens: int
    money: Decimal


def spending_of(judges: Iterable[RunJudge]) -> Spent:
    rows = list(judges)
    return Spent(sum(row.tokens for row in rows), sum((row.money for row in rows), Decimal()))


def when_spent(look: Callable[[Run], None]) -> Callable[[Run], None]:
    """Decorator of a function that looks at a run after its judges have used tokens or money. It may move the run."""
    _when_spent.append(look)
    return look


def spent(run: Run) -> None:
    """Call it when the use is stored, outside of the transaction: the functions lock the run, which others lock before its judges."""
    for look in _when_spent:
        look(run)


def licences(run: Run) -> dict[int, Licence]:
    """The known facts about the judges that the run's config names, and of those it has asked, by version."""
    rows = JudgeVersion.objects.filter(Q(run_slots__run=run) | Q(run_judges__run=run))
    return licence.licences(run.experiment.workspace_id, rows.select_related("judge").distinct().order_by("id"))


def judges(run: Run) -> list[RunJudge]:
    """The judges that the run has asked through this server, in the order of their first question."""
    return list(run.judges.select_related("version__judge", "version__endpoint").order_by("id"))


def judge_budgets(run: Run) -> list[RunJudge]:
    """The judges that the run has asked, and those that it has not asked yet, as unsaved rows that cannot be changed."""
    asked = judges(run)
    known = {row.version_id for row in asked}
    others = [version for version in grants.versions(run).values() if version.pk not in known]
    return asked + [RunJudge(run=run, version=version) for version in others]


@transaction.atomic
def change(membership: Membership, row: RunJudge, tokens: Any = KEEP, money: Any = KEEP) -> RunJudge:
    """Sets new limits on the judge's use in the whole run; a run that waits because of the old limits continues.

    Raises Invalid at `budget_tokens` or `budget_money` if that much is used already.
    """
    held = RunJudge.objects.select_for_update(no_key=True).get(pk=row.pk)
    problems: dict[str, str] = {}
    if tokens is not KEEP and tokens is not None and tokens <= held.tokens:
        problems["budget_tokens"] = f"must be more than the {held.tokens:,} tokens that are already used"
    if money is not KEEP and money is not None and not held.money < money < MOST_MONEY:
        problems["budget_money"] = (
            f"must be more than the {held.money.normalize():f} that is spent, and less than {MOST_MONEY:,}"
        )
    if problems:
        raise Invalid("The budget cannot be set.", problems)
    changed = {name: value for name, value in (("budget_tokens", tokens), ("budget_money", money)) if value is not KEEP}
    RunJudge.objects.filter(pk=row.pk).update(**changed)
    told = {name: None if value is None else str(value) for name, value in changed.items()}
    audit.record(membership, membership.user, "run.budget", row.run, judge=str(row.version), **told)
    row.refresh_from_db(fields=["budget_tokens", "budget_money"])
    broadcasts.judges(row.run_id)
    return row
