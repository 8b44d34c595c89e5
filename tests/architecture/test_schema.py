"""Tests start from a copy of a schema that was made before. It must be the schema of these migrations."""

import pytest
from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests import schema


@pytest.mark.django_db
def test_the_copy_has_every_migration_and_the_triggers():
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgenabled = 'O'")
        assert cursor.fetchone()[0] > 0


@pytest.mark.parametrize(
    "changed", ["requirements.lock", "webapp/shop/migrations/0001_initial.py", "webapp/shop/migrations/0002_b.py"]
)
def test_another_migration_or_package_is_another_file(tmp_path, monkeypatch, changed):
    (tmp_path / "webapp" / "shop" / "migrations").mkdir(parents=True)
    for name in ("requirements.lock", "webapp/shop/migrations/0001_initial.py"):
        (tmp_path / name).write_text("first")
    monkeypatch.setattr(schema, "ROOT", tmp_path)
    before = schema.schema_file()
    assert schema.schema_file() == before
    (tmp_path / changed).write_text("second")
    assert schema.schema_file() != before


def test_a_database_of_ones_own_is_migrated(monkeypatch):
    monkeypatch.delenv(schema.PROGRAMS, raising=False)
    monkeypatch.setitem(settings.DATABASES["default"], "TEST", {})
    with schema.template():
        assert settings.DATABASES["default"]["TEST"] == {}
