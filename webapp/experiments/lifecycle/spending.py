"""The limit for all judges of a run together. At the limit the run stops as if somebody had stopped it, with a checkpoint, and asks no
more."""

from decimal import Decimal
from typing import Any

from django.db import transaction

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid

from ..live import broadcasts
from ..models import LoggedElsewhere, Run
from ..rewards.budgets import KEEP, MOST_MONEY, Spent, spending_of
from .deleted_runs import unless_deleted

MOST_TOKENS = 2**53


def used_up(run: Run) -> str:
    """The limit that is used up, in words; empty if none is."""
    if run.judge_token_limit is None and run.judge_money_limit is None:
        return ""
    used = spending_of(run.judges.all())
    if run.judge_token_limit is not None and used.tokens >= run.judge_token_limit:
        return f"The {run.judge_token_limit:,} tokens that its judges may use are used up"
    if run.judge_money_limit is not None and used.money >= run.judge_money_limit:
        return f"The {money_words(run.judge_money_limit)} that its judges may cost are used up"
    return ""


def check(run: Run) -> None:
    """Raises Conflict if the run would be stopped again at once."""
    if told := used_up(run):
        raise Conflict(f"{told}. Raise or lift the limit first, under Spending limit.", "spending_limit")


@unless_deleted
def change(membership: Membership, run: Run, tokens: Any = KEEP, money: Any = KEEP) -> Run:
    """Sets new limits, or none; KEEP leaves one as it is. The same again changes nothing.

    Raises Invalid at `budget_tokens` or `budget_money` if that much is used already.
    """
    if run.is_logged:
        raise LoggedElsewhere
    asked = {"judge_token_limit": tokens, "judge_money_limit": money}
    wanted = {name: value for name, value in asked.items() if value is not KEEP}
    with transaction.atomic():
        held = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        if problems := _problems(spending_of(held.judges.all()), tokens, money):
            raise Invalid("The spending limit cannot be set.", problems)
        if any(getattr(held, name) != value for name, value in wanted.items()):
            Run.objects.filter(pk=run.pk).update(**wanted)
            names = {"judge_token_limit": "budget_tokens", "judge_money_limit": "budget_money"}
            told = {names[name]: None if value is None else f"{value}" for name, value in wanted.items()}
            audit.record(membership, membership.user, "run.spending", run, **told)
    run.refresh_from_db(from_queryset=Run.objects.with_names())
    broadcasts.run_changed(run)
    return run


def _problems(used: Spent, tokens: Any, money: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    if tokens is not KEEP and tokens is not None and not used.tokens < tokens < MOST_TOKENS:
        found["budget_tokens"] = (
            f"must be more than the {used.tokens:,} tokens that are used, and less than {MOST_TOKENS:,}"
        )
    if money is not KEEP and money is not None and not used.money < money < MOST_MONEY:
        found["budget_money"] = (
            f"must be more than the {money_words(used.money)} that are spent, and less than {MOST_MONEY:,}"
        )
    return found


def money_words(amount: Decimal) -> str:
    """2.5, 100: without zeros at the end."""
    return f"{amount.normalize():f}"
