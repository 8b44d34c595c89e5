"""A test that commits leaves nothing behind for the next one, although rows are deleted and tables are not truncated. The connections of its
server stay, if no thread holds one."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, connection, transaction

from tests import connection_pool, database_cleanup
from tests.connection_pool import shared_connections
from tests.database_cleanup import KEPT, delete_rows, tables_with_rows
from tests.team import make_team
from tests.webapp.experiments.conftest import make_version
from webapp.datasets.models import DatasetVersion

pytestmark = pytest.mark.django_db(transaction=True)


def test_rows_that_triggers_protect_go_too_and_the_triggers_hold_afterwards():
    make_version(make_team().owner)
    types = set(ContentType.objects.values_list("pk", flat=True))
    assert {"datasets_versionmember", "accounts_membership"} <= set(tables_with_rows()) - KEPT
    delete_rows()
    assert set(tables_with_rows()) <= KEPT
    assert set(ContentType.objects.values_list("pk", flat=True)) == types

    version = make_version(make_team().owner)
    with pytest.raises(IntegrityError, match="cannot change"):
        DatasetVersion.objects.filter(pk=version.pk).update(digest="e" * 64)


def test_a_transaction_that_a_test_has_left_open_holds_no_rows():
    team = make_team()
    transaction.set_autocommit(False)
    type(team.workspace).objects.update(name="held")
    make_version(team.owner)
    database_cleanup._teardown(None)
    assert set(tables_with_rows()) <= KEPT and connection.connection is None


def test_if_its_connection_was_ended_it_opens_another():
    make_team()
    before = database_cleanup._server().info.backend_pid
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 60000)", [before])
    delete_rows()
    assert set(tables_with_rows()) <= KEPT and database_cleanup._server().info.backend_pid != before


@pytest.fixture
def in_a_thread() -> Iterator[ThreadPoolExecutor]:
    connection_pool.close()
    with ThreadPoolExecutor(1) as found:
        yield found
    connection_pool.close()


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (found,) = cursor.fetchone()
    return found


def given_back() -> int:
    found = backend()
    connection.close()
    return found


def backends() -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        return {pid for (pid,) in cursor.fetchall()}


def test_the_connections_of_a_server_serve_the_next_one(in_a_thread):
    with shared_connections():
        in_a_thread.submit(given_back).result()
    kept = backends() - {backend()}
    with shared_connections():
        assert in_a_thread.submit(given_back).result() in kept  # the pool may have opened two, and hands out either


def test_a_connection_that_a_thread_still_holds_is_not_kept(in_a_thread, monkeypatch):
    monkeypatch.setattr(connection_pool, "RETURNED_S", 0.05)
    with shared_connections():
        held = in_a_thread.submit(backend).result()
    in_a_thread.submit(lambda: connection.close()).result()  # its own connection, not ours
    with shared_connections():
        assert in_a_thread.submit(given_back).result() != held
