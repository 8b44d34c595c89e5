"""The database has the schema that the code expects, and a difference is reported."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from scripts import migrations
from tests.team import ApiClient
from webapp.core.database import schema
from webapp.version import VERSION

pytestmark = pytest.mark.django_db
CHANGES = [
    ("ALTER TABLE inference_endpoint DROP COLUMN next_turn_at", "inference_endpoint has no column next_turn_at"),
    ("DROP TABLE inference_endpointlease", "there is no table inference_endpointlease"),
    ("ALTER TABLE core_auditentry ALTER COLUMN action TYPE text", "core_auditentry.action is text, not character varying("),
    ("ALTER TABLE datasets_example ALTER COLUMN excerpt DROP NOT NULL", "datasets_example.excerpt may be null"),
    ("ALTER TABLE annotation_job ADD COLUMN old text NOT NULL", "has a column old that this version does not fill"),
    ("DROP INDEX open_jobs", "annotation_job: there is no open_jobs"),
    ("ALTER TABLE annotation_answer DROP CONSTRAINT one_answer_per_revision", "there is no one_answer_per_revision"),
    ("DROP TRIGGER members_stay ON datasets_versionmember", "datasets_versionmember: there is no trigger members_stay"),
    ("ALTER TABLE datasets_versionmember DROP CONSTRAINT datasets_versionmember_pkey CASCADE; "
     "ALTER TABLE datasets_versionmember ADD id bigserial PRIMARY KEY", "its primary key is not (version_id, position)"),
    ("DELETE FROM django_migrations WHERE app = 'webhooks'", "not applied: webhooks.0001_initial"),
]  # fmt: skip


def run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def test_a_new_database_is_what_the_code_expects():
    assert schema.differences() == []


@pytest.mark.parametrize(("sql", "words"), CHANGES)
def test_a_change_behind_its_back_is_named(sql, words):
    run(sql)
    assert any(words in each for each in schema.differences()), schema.differences()


def test_what_somebody_added_is_no_difference():
    run("CREATE INDEX mine ON datasets_example (excerpt)")
    run("ALTER TABLE datasets_example ADD COLUMN mine integer")
    assert schema.differences() == []


def test_the_command_refuses_to_go_on(capsys):
    call_command("upgrade", "--check")
    assert VERSION in capsys.readouterr().out
    run("ALTER TABLE datasets_example DROP COLUMN pass_rate")
    with pytest.raises(CommandError, match="datasets_example has no column pass_rate"):
        call_command("upgrade", verbosity=0)


def test_the_version_is_told(team, as_owner):
    assert ApiClient(team.annotator).get("/version").json() == {"version": VERSION, "schema_state": "current"}
    page = as_owner.get("/version").content.decode()
    assert f"Touchstone {VERSION}" in page and "expects" in page and "<h2" in page  # the heading of the changes
    assert "brought to the schema" in page  # the sentence is whole, also if the file breaks it into lines
    assert f"Touchstone {VERSION}</a>" in as_owner.get("/").content.decode()


def test_a_database_that_does_not_fit_is_told(team, as_owner):
    run("DROP INDEX open_jobs")
    assert ApiClient(team.owner).get("/version").json()["schema_state"] == "differs"
    assert "manage.py upgrade" in as_owner.get("/version").content.decode()


def test_migrations_only_grow():
    assert migrations.problems() == []


def test_a_changed_or_unlisted_migration_is_a_problem(monkeypatch):
    known = migrations.listed()
    first, *rest = known
    monkeypatch.setattr(migrations, "listed", lambda: {first: "0" * 64} | {path: known[path] for path in rest[1:]})
    changed, unlisted = migrations.problems()
    assert first in changed and "was changed" in changed and rest[0] in unlisted
    assert migrations.main() == 1
