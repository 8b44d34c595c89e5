"""Statements of one block see the rows of one moment."""

import threading

import pytest
from django.db import InternalError, connection, transaction

from webapp.accounts.models import User
from webapp.core.database.snapshots import one_moment

pytestmark = pytest.mark.django_db(transaction=True)


def somebody_signs_up(email: str) -> None:
    def work() -> None:
        User.objects.create(email=email)
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)


def test_a_block_sees_the_rows_of_one_moment():
    with one_moment():
        assert User.objects.count() == 0
        somebody_signs_up("a@example.org")
        assert User.objects.count() == 0
    assert User.objects.count() == 1


def test_a_block_in_a_transaction_sees_what_that_transaction_sees():
    with transaction.atomic():
        User.objects.create(email="a@example.org")
        with one_moment():
            assert User.objects.count() == 1
        User.objects.create(email="b@example.org")
    assert User.objects.count() == 2


def test_a_block_writes_nothing():
    with pytest.raises(InternalError, match="read-only"), one_moment():
        User.objects.create(email="a@example.org")
    assert User.objects.count() == 0
