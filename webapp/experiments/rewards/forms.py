"""The budget of a judge as a person types it."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number


def budget(form: Mapping[str, str]) -> tuple[int | None, Decimal | None]:
    """Tokens and money as a person has typed them; an empty field means no limit. Raises Invalid."""
    tokens, money = (form.get(name, "").strip().replace(",", "") for name in ("budget_tokens", "budget_money"))
    problems: dict[str, str] = {}
    count = whole_number(tokens, 15) if tokens else None
    if tokens and not count:
        problems["budget_tokens"] = "tokens are a whole number above 0; leave the field empty for no limit"
    try:
        amount = Decimal(money) if money else None
    except InvalidOperation:
        amount = Decimal(0)
    if amount is not None and not (amount.is_finite() and amount > 0):
        problems["budget_money"] = "money is a number above 0; leave the field empty for no limit"
    if problems:
        raise Invalid("The budget cannot be set.", problems)
    return count, amount
