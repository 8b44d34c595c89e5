"""Datasets are renamed, archived and deleted; what depends on one keeps it, and is named."""

import pytest

from tests.cast import ApiClient
from webapp.annotation.models import Project
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.datasets import services
from webapp.datasets.models import Dataset, Example, ImportJob, PackedColumn, VersionMember, WordHits

from .conftest import row


@pytest.fixture
def dataset(importing):
    return importing([row("e1", domain="maths"), row("e2")], name="First").version.dataset


def test_a_dataset_gets_another_name_and_the_next_import_by_it_goes_there(dataset, importing, api):
    assert api.post(f"/datasets/{dataset.pk}/rename", {"name": " Second  set "}).json()["name"] == "Second set"
    assert importing([row("e3")], name="Second set").version.dataset_id == dataset.pk
    importing([row("e9")], name="Other")
    taken = api.post(f"/datasets/{dataset.pk}/rename", {"name": "Other"})
    assert (taken.status_code, taken.json()["error"]["fields"][0]["path"]) == (422, "name")
    assert AuditEntry.objects.get(action="dataset.renamed").detail["before"] == "First"


def test_it_is_left_alone_while_something_is_written_into_it(dataset, cast, api, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key": "e5", "prompt": "?"}')
    job = services.start_import(cast.researcher, path, name="First", queue=False)
    for answer in (api.post(f"/datasets/{dataset.pk}/rename", {"name": "New"}), api.delete(f"/datasets/{dataset.pk}")):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "under_way")
    services.run_import(job.pk)
    assert ImportJob.objects.get(pk=job.pk).state == "finished"
    assert api.post(f"/datasets/{dataset.pk}/rename", {"name": "New"}).status_code == 200


def test_an_archived_dataset_is_not_listed_and_takes_no_import(dataset, api, importing):
    assert api.post(f"/datasets/{dataset.pk}/archive", {"archived": True}).json()["archived_at"]
    assert api.get("/datasets").json()["items"] == []
    assert [each["id"] for each in api.get("/datasets", archived=True).json()["items"]] == [dataset.pk]
    assert api.get(f"/datasets/{dataset.pk}/versions/1").status_code == 200
    with pytest.raises(Invalid) as problem:
        importing([row("e3")], name="First")
    assert list(problem.value.fields) == ["name"]
    api.post(f"/datasets/{dataset.pk}/archive", {"archived": False})
    assert importing([row("e3")], name="First").version.number == 2


def test_a_dataset_goes_with_all_that_is_its_own_and_its_name_is_free(dataset, api, importing):
    other = importing([row("x")], name="Other").version
    assert api.get(f"/datasets/{dataset.pk}/dependents").json()["items"] == []
    assert api.delete(f"/datasets/{dataset.pk}").status_code == 204
    assert list(Dataset.every.values_list("name", flat=True)) == ["Other"]
    assert Example.objects.count() == VersionMember.objects.count() == 1
    for left in (PackedColumn.objects.all(), WordHits.objects.all()):
        assert left.exists()
    assert not WordHits.objects.exclude(dataset=other.dataset).exists()
    assert importing([row("e1")], name="First").version.number == 1


def test_what_depends_on_it_is_named(dataset, api, as_researcher, cast):
    version = dataset.versions.get()
    for i in range(7):
        Project.objects.create(workspace=cast.workspace, name=f"Pilot {i}", kind="grading", version=version)
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


def test_others_may_not(dataset, cast):
    for membership, status in ((cast.outsider, 404), (cast.reviewer, 403), (cast.annotator, 403)):
        client = ApiClient(membership)
        assert client.delete(f"/datasets/{dataset.pk}").status_code == status
        assert client.post(f"/datasets/{dataset.pk}/rename", {"name": "Mine"}).status_code == status
        assert client.post(f"/datasets/{dataset.pk}/archive", {"archived": True}).status_code == status
    assert dataset.name == "First"
