"""Keyset paging compared with plain slicing, over columns with equal values."""

import json
from base64 import urlsafe_b64encode

import pytest

from webapp.accounts.models import User
from webapp.core.database.paging import page
from webapp.core.problems import Invalid

pytestmark = pytest.mark.django_db


@pytest.fixture
def people():
    for n in range(7):
        User.objects.create_user(f"p{n}@example.org", name=f"name{n % 3}")
    return User.objects.all()


def walk(rows, limit, order):
    seen, cursor = [], None
    while True:
        part = page(rows, cursor, limit, order)
        seen += part.items
        cursor = part.next
        if cursor is None:
            return seen


@pytest.mark.parametrize("order", ["id", "-id", "name", "-name", "date_joined", "-date_joined"])
@pytest.mark.parametrize("limit", [1, 3, 7, 200])
def test_walking_the_pages_equals_sorting(people, order, limit):
    sign = "-" if order.startswith("-") else ""
    assert walk(people, limit, order) == list(people.order_by(order, f"{sign}id"))


def test_a_row_added_meanwhile_shifts_nothing(people):
    first = page(people, None, 3, "-id")
    User.objects.create_user("late@example.org")
    second = page(people, first.next, 3, "-id")
    assert not {u.pk for u in first.items} & {u.pk for u in second.items}


def test_a_cursor_of_another_order_is_refused(people):
    cursor = page(people, None, 3, "-id").next
    with pytest.raises(Invalid, match="cursor"):
        page(people, cursor, 3, "name")
    with pytest.raises(Invalid, match="cursor"):
        page(people, urlsafe_b64encode(b"[" * 3_000).decode(), 3, "name")


@pytest.mark.parametrize("value", [None, [], {}, "\0", "not a date", 10**400, True])
@pytest.mark.parametrize("order", ["id", "date_joined"])
def test_a_forged_cursor_is_refused_or_leads_somewhere(people, order, value):
    forged = urlsafe_b64encode(json.dumps([order, value, 10**30]).encode()).decode()
    try:
        assert isinstance(page(people, forged, 3, order).items, list)
    except Invalid as problem:
        assert list(problem.fields) == ["cursor"]
