"""Verdicts of judges that answer in the run's own process, beside their weights. They are kept in the verdict store, too."""

from django.db import transaction
from django.db.models import F

from trainer.contracts import KnownVerdicts, OwnVerdicts
from trainer.judges.engine import Outcome
from webapp.core.problems import Conflict, Invalid
from webapp.inference.models import Endpoint
from webapp.judging.asking import own_verdicts
from webapp.judging.verdicts import queries as verdict_queries
from webapp.judging.verdicts.store import store, use
from webapp.usage import counters

from ..live import broadcasts
from ..models import Run, RunJudge
from ..queries import work_of
from . import budgets, questions


def exchange(run: Run, told: OwnVerdicts) -> KnownVerdicts:
    """Stores new verdicts and returns requested ones. Raises Conflict if the run is over, Invalid at the field."""
    if run.is_over:
        raise Conflict("This run is over.", code="over")
    row = questions.judge_row(run, told.judge)
    version = row.version
    if version.endpoint.kind != Endpoint.Kind.LOCAL:
        raise Invalid("This judge does not answer in the run.", {"judge": f"{version} is asked by this server"})
    if told.verdicts:
        _store(row, list(own_verdicts.outcomes(version, told.verdicts)))
        broadcasts.judges(run.pk)
        budgets.spent(run)
    row.refresh_from_db()
    money = row.budget_money
    return KnownVerdicts(
        answers=questions.answers(version, told.keys),
        budget_tokens=row.budget_tokens,
        budget_money=None if money is None else str(money),
        tokens=row.tokens,
        money=str(row.money),
    )


def _store(row: RunJudge, outcomes: list[Outcome]) -> None:
    """Counts the cost of the calls with the verdict that they brought, once, even if it is sent again."""
    with transaction.atomic():
        RunJudge.objects.select_for_update(no_key=True).get(pk=row.pk)
        there = verdict_queries.stored_keys(row.version, [outcome.call.key for outcome in outcomes])
        new = {outcome.call.key: outcome for outcome in outcomes if outcome.call.key not in there}.values()
        store(row.version, new)
        tokens, money = own_verdicts.usage_of_calls(new)
        RunJudge.objects.filter(pk=row.pk).update(
            calls=F("calls") + len(new),
            tokens=F("tokens") + tokens,
            money=F("money") + money,
        )
        counters.count(work_of(row.run), row.version.endpoint_id, use(new))
