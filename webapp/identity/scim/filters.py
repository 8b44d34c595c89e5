"""Filters of lists (RFC 7644, 3.4.2.2), carried out by the database: `eq` on the searchable attributes, `and`, `or`."""

from collections.abc import Callable, Mapping
from uuid import UUID

from django.db.models import Q
from scim2_models import InvalidFilterException, ScimFilter
from scim2_models.path import CompareOperator, Comparison, FilterNode, LogicalExpr, LogicalOperator

from .resources import fold

LONGEST = 2000  # characters
MOST_TERMS = 20
Condition = Callable[[object], Q]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidFilterException(detail="Such a value is compared with a string.")
    return value


def _id(field: str) -> Condition:
    def condition(value: object) -> Q:
        try:
            return Q(**{field: UUID(_text(value))})
        except ValueError:
            return Q(pk__in=())

    return condition


def _truth(value: object) -> Q:
    if not isinstance(value, bool):
        raise InvalidFilterException(detail="active is compared with true or false.")
    return Q(user__is_active=value)


def _email(value: object) -> Q:
    return Q(emails__contains=[fold(_text(value))])


PEOPLE: Mapping[str, Condition] = {
    "id": _id("key"),
    "username": lambda value: Q(user_name=fold(_text(value))),
    "externalid": lambda value: Q(external_id=_text(value)),
    "emails": _email,
    "emails.value": _email,
    "active": _truth,
}
GROUPS: Mapping[str, Condition] = {
    "id": _id("key"),
    "displayname": lambda value: Q(name__iexact=_text(value)),
    "externalid": lambda value: Q(external_id=_text(value)),
    "members": _id("people__key"),
    "members.value": _id("people__key"),
}


def condition(text: str, known: Mapping[str, Condition]) -> Q:
    """The condition of a filter. Raises InvalidFilterException for an unreadable filter, and for attributes that are not searchable."""
    if len(text) > LONGEST:
        raise InvalidFilterException(detail=f"A filter has at most {LONGEST} characters.")
    return _condition(ScimFilter(text).ast, known)


def _condition(node: FilterNode, known: Mapping[str, Condition]) -> Q:
    if isinstance(node, LogicalExpr) and len(node.terms) <= MOST_TERMS:
        found = Q()
        for term in node.terms:
            found = (
                found | _condition(term, known) if node.op == LogicalOperator.or_ else found & _condition(term, known)
            )
        return found
    if isinstance(node, Comparison) and node.op == CompareOperator.eq:
        path = node.attr_path
        named = f"{path.attr}.{path.sub_attr}" if path.sub_attr else path.attr
        if make := known.get(named.lower()):
            return make(node.value)
    raise InvalidFilterException(detail=f"This service filters by eq on {', '.join(known)}, joined by and, or.")
