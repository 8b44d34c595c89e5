"""Datasets are renamed, archived and deleted. A dataset that something depends on is kept, and the message names what depends on it."""

from datetime import timedelta

import pytest

from tests.team import ApiClient
from webapp.annotation.models import Project
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.datasets import housekeeping
from webapp.datasets.ingest import services
from webapp.datasets.models import Dataset, Example, ImportJob, PackedColumn, VersionMember, WordHits

from .conftest import row


@pytest.fixture
def dataset(import_rows):
    return import_rows([row("e1", domain="maths"), row("e2")], name="First").version.dataset


def test_a_dataset_gets_another_name_and_the_next_import_by_it_goes_there(dataset, import_rows, api):
    assert api.post(f"/datasets/{dataset.pk}/rename", {"name": " Second  set "}).json()["name"] == "Second set"
    assert import_rows([row("e3")], name="Second set").version.dataset_id == dataset.pk
    import_rows([row("e9")], name="Other")
    taken = api.post(f"/datasets/{dataset.pk}/rename", {"name": "Other"})
    assert (taken.status_code, taken.json()["error"]["fields"][0]["path"]) == (422, "name")
    assert AuditEntry.objects.get(action="dataset.renamed").detail["before"] == "First"


def test_it_is_left_alone_while_something_is_written_into_it(dataset, team, api, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key": "e5", "prompt": "?"}')
    job = services.start_import(team.researcher, path, name="First", queue=False)
    for answer in (api.post(f"/datasets/{dataset.pk}/rename", {"name": "New"}), api.delete(f"/datasets/{dataset.pk}")):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "under_way")
    services.run_import(job.pk)
    assert ImportJob.objects.get(pk=job.pk).state == "finished"
    assert api.post(f"/datasets/{dataset.pk}/rename", {"name": "New"}).status_code == 200


def test_an_archived_dataset_is_not_listed_and_takes_no_import(dataset, api, import_rows):
    assert api.post(f"/datasets/{dataset.pk}/archive", {"archived": True}).json()["archived_at"]
    assert api.get("/datasets").json()["items"] == []
    assert [each["id"] for each in api.get("/datasets", archived=True).json()["items"]] == [dataset.pk]
    assert api.get(f"/datasets/{dataset.pk}/versions/1").status_code == 200
    with pytest.raises(Invalid) as problem:
        import_rows([row("e3")], name="First")
    assert list(problem.value.fields) == ["name"]
    api.post(f"/datasets/{dataset.pk}/archive", {"archived": False})
    assert import_rows([row("e3")], name="First").version.number == 2


def test_a_dataset_goes_with_all_that_is_its_own_and_its_name_is_free(dataset, api, import_rows):
    other = import_rows([row("x")], name="Other").version
    assert api.get(f"/datasets/{dataset.pk}/dependents").json()["items"] == []
    assert api.delete(f"/datasets/{dataset.pk}").status_code == 204
    assert list(Dataset.every.values_list("name", flat=True)) == ["Other"]
    assert Example.objects.count() == VersionMember.objects.count() == 1
    for left in (PackedColumn.objects.all(), WordHits.objects.all()):
        assert left.exists()
    assert not WordHits.objects.exclude(dataset=other.dataset).exists()
    assert import_rows([row("e1")], name="First").version.number == 1


def test_what_depends_on_it_is_named(dataset, api, as_researcher, team):
    version = dataset.versions.get()
    for i in range(7):
        Project.objects.create(workspace=team.workspace, name=f"Pilot {i}", kind="grading", version=version)
    answer = api.delete(f"/datasets/{dataset.pk}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "in_use")
    assert "projects: Pilot 0, Pilot 1, Pilot 2, Pilot 3, Pilot 4 and 2 more" in answer.json()["error"]["message"]
    assert api.get(f"/datasets/{dataset.pk}/dependents").json()["items"][0]["count"] == 7
    page = as_researcher.get(f"/datasets/{dataset.pk}/versions").content.decode()
    assert "cannot be deleted" in page and "Pilot 0" in page
    assert Example.objects.count() == 2


def test_the_page_deletes_only_what_is_typed(dataset, as_researcher):
    url = f"/datasets/{dataset.pk}/housekeeping"
    as_researcher.post(url, {"action": "delete", "name": "Frist"})
    assert Dataset.objects.exists()
    as_researcher.post(url, {"action": "rename", "name": "Renamed"})
    as_researcher.post(url, {"action": "archive"})
    assert "Renamed" in as_researcher.get("/datasets?archived=1").content.decode()
    assert as_researcher.post(url, {"action": "delete", "name": "Renamed"}).url == "/datasets"
    assert not Dataset.every.exists()


def test_others_may_not(dataset, team):
    for membership, status in ((team.outsider, 404), (team.reviewer, 403), (team.annotator, 403)):
        client = ApiClient(membership)
        assert client.delete(f"/datasets/{dataset.pk}").status_code == status
        assert client.post(f"/datasets/{dataset.pk}/rename", {"name": "Mine"}).status_code == status
        assert client.post(f"/datasets/{dataset.pk}/archive", {"archived": True}).status_code == status
    assert dataset.name == "First"


@pytest.fixture
def large(dataset, monkeypatch):
    """Here two examples are more than one request deletes."""
    monkeypatch.setattr(housekeeping, "AT_ONCE", 1)
    return dataset


def test_a_large_dataset_is_deleted_by_a_worker_once_however_often_it_is_asked_for(
    large, api, as_researcher, import_rows, django_capture_on_commit_callbacks, eager
):
    page = f"/datasets/{large.pk}/housekeeping"
    with django_capture_on_commit_callbacks() as asked:
        answer = api.delete(f"/datasets/{large.pk}")
        assert answer.status_code == 202 and answer.json()["deleting_at"]
        assert api.delete(f"/datasets/{large.pk}").status_code == 202
        assert as_researcher.post(page, {"action": "delete", "name": "First"}).url == "/datasets"
    assert len(asked) == 1 and Example.objects.count() == 2
    assert "It is being deleted" in as_researcher.get(f"/datasets/{large.pk}/versions").content.decode()
    with pytest.raises(Invalid) as problem:
        import_rows([row("e3")], name="First")
    assert "being deleted" in problem.value.fields["name"]
    asked[0]()
    assert not Dataset.every.exists() and not Example.objects.exists()
    assert AuditEntry.objects.filter(action="dataset.deleted").count() == 1
    housekeeping.carry_out(large.pk)  # the message is sent a second time
    assert api.get(f"/datasets/{large.pk}").status_code == 404


def test_what_depends_on_it_by_the_time_the_worker_comes_keeps_all_of_it(large, api, team, as_researcher):
    assert api.delete(f"/datasets/{large.pk}").status_code == 202
    Project.objects.create(workspace=team.workspace, name="Pilot", kind="grading", version=large.versions.get())
    housekeeping.carry_out(large.pk)
    told = api.get(f"/datasets/{large.pk}").json()
    assert told["deleting_at"] is None and "projects: Pilot" in told["delete_problem"]
    assert Example.objects.count() == VersionMember.objects.count() == 2
    assert "It was not deleted" in as_researcher.get(f"/datasets/{large.pk}/versions").content.decode()
    assert api.delete(f"/datasets/{large.pk}").status_code == 409


def test_a_deletion_whose_message_got_lost_is_taken_up(large, api, monkeypatch):
    api.delete(f"/datasets/{large.pk}")
    queued = []
    monkeypatch.setattr(housekeeping, "enqueue", lambda name, pk: queued.append(pk))
    housekeeping.take_up_lost(timedelta(minutes=2))
    assert queued == []
    housekeeping.take_up_lost(timedelta(0))
    assert queued == [large.pk]
