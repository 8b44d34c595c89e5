"""Reads of several statements that all see the database as of one moment."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def one_moment() -> Iterator[None]:
    """The statements of the block see the rows as of the first of them, and write nothing. They keep nobody from writing.

    In a transaction of the caller they see the rows as that transaction does: its isolation cannot change after its first statement.
    """
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
