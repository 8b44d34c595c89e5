"""Work that only one process at a time may do."""

import threading

import pytest
from django.db import connection

from webapp.core.database.locks import Work, exclusive

pytestmark = pytest.mark.django_db(transaction=True)


def elsewhere(work: Work, key: int) -> bool:
    """Whether another connection gets the lock now."""
    got = []

    def try_it() -> None:
        with exclusive(work, key) as ours:
            got.append(ours)
        connection.close()

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join()
    return got[0]


def test_one_at_a_time_until_the_block_ends():
    with exclusive(Work.IMPORT, 7) as ours:
        assert ours and not elsewhere(Work.IMPORT, 7)
    assert elsewhere(Work.IMPORT, 7)


def test_work_of_another_kind_or_on_another_row_goes_on():
    with exclusive(Work.EVALUATION, 7):
        assert elsewhere(Work.TRIAL, 7) and elsewhere(Work.EVALUATION, 8)


def test_who_does_not_get_it_leaves_it_with_who_has_it():
    with exclusive(Work.IMPORT, 7):
        assert not elsewhere(Work.IMPORT, 7)
        assert not elsewhere(Work.IMPORT, 7)


def test_a_row_number_beyond_31_bits_is_a_key_too():
    with exclusive(Work.IMPORT, 2**40 + 7) as ours:
        assert ours
