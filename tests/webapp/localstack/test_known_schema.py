"""Whether `upgrade` has work to do is known without starting it."""

import os
import shutil
import tempfile
from pathlib import Path

import psycopg
import pytest

from webapp.localstack import known_schema
from webapp.localstack.postgres import Postgres

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def server():
    home = Path(tempfile.mkdtemp(prefix="ts-known-"))
    home.chmod(0o755)  # as root, the database runs as another user
    server = Postgres(home, durable=False)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def code(tmp_path, settings, monkeypatch):
    """A product of one app with one migration, and a separate var folder."""
    settings.VAR = tmp_path / "var"
    folder = tmp_path / "webapp" / "shop" / "migrations"
    folder.mkdir(parents=True)
    (folder / "0001_initial.py").write_text("first")
    (tmp_path / "requirements.lock").write_text("django==5\n")
    monkeypatch.setattr(known_schema, "BASE", tmp_path)
    return tmp_path


@pytest.fixture
def url(server):
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("drop table if exists django_migrations, goods")
        connection.execute("create table goods (id int primary key, name text)")
        connection.execute("create table django_migrations (app text, name text)")
        connection.execute("insert into django_migrations values ('shop', '0001_initial')")
    return server.url()


def change(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def test_nothing_is_known_before_the_first_migrate(code, url):
    assert not known_schema.is_current(url)


def test_what_was_left_as_it_is_is_current(code, url):
    known_schema.remember(url)
    assert known_schema.is_current(url)


def test_a_new_migration_is_to_be_done(code, url):
    known_schema.remember(url)
    (code / "webapp" / "shop" / "migrations" / "0002_more.py").write_text("second")
    assert not known_schema.is_current(url)


def test_a_changed_migration_is_looked_at(code, url):
    known_schema.remember(url)
    (code / "webapp" / "shop" / "migrations" / "0001_initial.py").write_text("other")
    assert not known_schema.is_current(url)


def test_other_packages_may_bring_other_migrations(code, url):
    known_schema.remember(url)
    (code / "requirements.lock").write_text("django==6\n")
    assert not known_schema.is_current(url)


def test_other_models_may_expect_other_tables(code, url):
    known_schema.remember(url)
    (code / "webapp" / "shop" / "models.py").write_text("class Goods: ...")
    assert not known_schema.is_current(url)


@pytest.mark.parametrize(
    "statement",
    [
        "alter table goods add price int",
        "alter table goods drop name",
        "alter table goods alter name type varchar(9)",
        "alter table goods alter name set not null",
        "alter table goods alter name set default 'none'",
        'alter table goods alter name type text collate "C"',
        "alter table goods add constraint named check (name <> '')",
        "alter table goods drop constraint goods_pkey",
        "create index by_name on goods (name)",
        "create trigger kept before update on goods for each row execute function suppress_redundant_updates_trigger()",
        "create table more (id int)",
    ],
)
def test_a_table_that_somebody_altered_is_looked_at(code, url, statement):
    known_schema.remember(url)
    assert known_schema.is_current(url)
    change(url, statement)
    assert not known_schema.is_current(url)
    change(url, "drop table if exists more")


def test_rows_are_no_schema(code, url):
    known_schema.remember(url)
    change(url, "insert into goods values (1, 'chair')")
    assert known_schema.is_current(url)


def test_an_older_or_a_newer_database_put_in_its_place_is_migrated(code, url):
    known_schema.remember(url)
    change(url, "insert into django_migrations values ('shop', '0002_more')")
    assert not known_schema.is_current(url)
    change(url, "delete from django_migrations")
    assert not known_schema.is_current(url)


def test_a_database_that_cannot_say_is_migrated(code, url):
    known_schema.remember(url)
    change(url, "drop table django_migrations")
    assert not known_schema.is_current(url)
    known_schema.remember(url)  # a migration that left no table does not count
    assert not known_schema.is_current(url)


def test_what_cannot_be_written_down_on_a_full_disk_is_found_out_again(code, url, settings):
    (settings.VAR / "run").mkdir(parents=True)
    (settings.VAR / "run" / f"{known_schema.FACTS}.{os.getpid()}").symlink_to("/dev/full")
    known_schema.remember(url)
    assert not known_schema.is_current(url)
