"""The audit log cannot be changed. A change by other means is detected. The log lists downloads, and can be filtered and exported."""

import json
from io import StringIO
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from tests.team import ApiClient, browser
from webapp.core.auditing import audit, chain
from webapp.core.models import AuditEntry, AuditSeal

pytestmark = pytest.mark.django_db


@pytest.fixture
def entries(team):
    for number in range(5):
        audit.record(team.workspace, team.owner.user, "thing.done", team.workspace, number=number, share=0.1)
    return AuditEntry.objects.filter(action="thing.done").order_by("id")


def verified(*args: str) -> str:
    out = StringIO()
    call_command("audit_verify", *args, stdout=out)
    return out.getvalue()


def around(statement: str, *values: Any) -> None:
    """Changes rows like a person with all rights over the database, without the triggers."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(statement, values)
        cursor.execute("SET LOCAL session_replication_role = origin")


def test_the_application_can_neither_change_nor_delete_an_entry(entries):
    chain.seal()
    attempts = [
        lambda: entries.update(action="nothing.done"),
        lambda: entries.update(detail={}),
        lambda: entries.filter(seal=None).delete() and None,
        lambda: AuditSeal.objects.update(digest="x"),
        lambda: AuditSeal.objects.all().delete(),
    ]
    for attempt in [*attempts[:2], *attempts[3:]]:
        with pytest.raises(IntegrityError, match="cannot be changed"), transaction.atomic():
            attempt()
    assert entries.count() == 5


def test_an_entry_that_is_not_sealed_yet_stays_as_well(entries):
    with pytest.raises(IntegrityError, match="cannot be changed"), transaction.atomic():
        entries.delete()


def test_a_closed_account_leaves_its_entries_and_the_chain_whole(team, entries):
    chain.seal()
    entries.update(actor=None)
    assert "unchanged" in verified()


def test_the_chain_goes_on_and_says_where_it_ends(team, entries):
    first = verified()
    assert f"{AuditEntry.objects.count()} entries, unchanged. Last digest: " in first
    head = first.split()[-1]
    audit.record(team.workspace, None, "thing.done", team.workspace)
    assert chain.verify().waiting == 1 and chain.seal() == 1 and chain.seal() == 0
    assert verified("--expect", head).split()[-1] != head
    with pytest.raises(CommandError, match="end of the log was cut off"):
        verified("--expect", "0" * 64)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE core_auditentry SET detail = '{}' WHERE id = %s",
        "UPDATE core_auditentry SET action = 'thing.undone' WHERE id = %s",
        "UPDATE core_auditentry SET created_at = created_at - interval '1 day' WHERE id = %s",
        "DELETE FROM core_auditseal WHERE entry_id = %s",
    ],
)
def test_what_somebody_with_all_rights_changed_shows(entries, statement):
    chain.seal()
    around(statement, entries[2].pk)
    assert chain.verify().problems
    with pytest.raises(CommandError, match="was changed"):
        verified()


def test_another_actor_shows(team, entries):
    chain.seal()
    around("UPDATE core_auditentry SET actor_id = %s WHERE id = %s", team.reviewer.user_id, entries[0].pk)
    assert "does not name the same person" in chain.verify().problems[0]


def test_downloads_and_exports_stand_in_the_log(team, monkeypatch):
    from webapp.inference.models import RegisteredModel

    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="run", path="/nowhere")
    refused = ApiClient(team.researcher).get(f"/models/{model.pk}/download")
    assert refused.status_code == 410 and not AuditEntry.objects.filter(action="model.downloaded").exists()
    monkeypatch.setattr("webapp.inference.folders.files.download", lambda row: None)
    monkeypatch.setattr("webapp.inference.registry.api.respond", lambda request, found: request)
    monkeypatch.setattr(
        "webapp.inference.registry.views.respond", lambda request, found: __import__("django").http.HttpResponse()
    )
    browser(team.reviewer).get(f"/models/{model.pk}/download")
    [entry] = AuditEntry.objects.filter(action="model.downloaded")
    assert (entry.actor, entry.object_id, entry.detail) == (team.reviewer.user, model.pk, {"name": "m"})


def test_the_log_is_filtered_and_taken_out_as_json_lines(team, entries):
    audit.record(team.workspace, team.reviewer.user, "other.done", team.workspace)
    owner = browser(team.owner)
    page = owner.get("/settings/audit", {"action": "other"}).content.decode()
    assert "other.done" in page and "thing.done" not in page
    assert "other.done" not in owner.get("/settings/audit", {"who": "ada@"}).content.decode()
    assert "No entry matches" in owner.get("/settings/audit", {"action": "none"}).content.decode()
    taken = owner.get("/settings/audit.jsonl", {"action": "thing"})
    rows = [json.loads(line) for line in read(taken).splitlines()]
    assert [row["detail"]["number"] for row in rows] == list(range(5)) and rows[0]["actor"] == "ada@example.org"
    assert AuditEntry.objects.get(action="audit.exported").detail == {"filter": {"action": "thing", "who": ""}}
    assert browser(team.researcher).get("/settings/audit.jsonl").status_code == 403


def read(response) -> str:
    @async_to_sync
    async def whole() -> bytes:
        return b"".join([part async for part in response.streaming_content])

    return whole().decode()
