"""The limits of a workspace: they hold under simultaneous requests, imports are refused at the field, and runs wait in the line."""

import json

import pytest

from tests.concurrency import concurrently
from tests.team import make_team
from webapp.accounts.administration import quotas
from webapp.accounts.models import Quota
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.datasets.ingest import services as imports
from webapp.datasets.models import ImportJob

pytestmark = pytest.mark.django_db
GB = 10**9


def a_file(folder, name="rows.jsonl"):
    path = folder / name
    path.write_text(json.dumps({"prompt": "Hello?", "chosen": "Hi.", "rejected": "No."}) + "\n")
    return path


def test_a_workspace_has_its_own_limits_and_else_those_of_the_installation(team):
    owner = team.owner.user
    quotas.change(owner, None, quotas.Limits(running_runs=4, import_bytes=GB))
    quotas.change(owner, team.workspace, quotas.Limits(running_runs=1))
    assert quotas.limits_of(team.workspace.pk) == quotas.Limits(1, None, GB)
    assert quotas.limits_of(team.outsider.workspace_id) == quotas.Limits(4, None, GB)
    quotas.change(owner, team.workspace, quotas.Limits())
    assert quotas.limits_of(team.workspace.pk).running_runs == 4
    assert Quota.objects.count() == 2
    assert AuditEntry.objects.filter(workspace=team.workspace, action="quota.changed").count() == 3
    with pytest.raises(Invalid) as refused:
        quotas.change(owner, None, quotas.Limits(imports_at_once=-1))
    assert set(refused.value.fields) == {"imports_at_once"}


def test_an_import_too_many_is_refused_at_the_file(team, api, as_researcher, tmp_path):
    quotas.change(team.owner.user, team.workspace, quotas.Limits(imports_at_once=1))
    imports.start_import(team.researcher, a_file(tmp_path), name="one")
    with a_file(tmp_path).open("rb") as file:
        refused = api.client.post("/api/v1/datasets/import", {"name": "two", "file": file})
    assert refused.status_code == 409 and refused.json()["error"]["code"] == "over_quota"
    assert refused.json()["error"]["fields"][0]["path"] == "file"
    with a_file(tmp_path).open("rb") as file:
        page = as_researcher.post("/datasets/import", {"name": "two", "file": file})
    assert page.status_code == 422 and b"1 of 1 imports at once are under way" in page.content
    ImportJob.objects.update(state="finished")
    imports.start_import(team.researcher, a_file(tmp_path), name="two")
    imports.start_import(team.outsider, a_file(tmp_path), name="of others")
    assert ImportJob.objects.count() == 3


def test_bytes_of_imported_files_are_counted_until_their_version_is_gone(team, tmp_path):
    path = a_file(tmp_path)
    size = path.stat().st_size
    quotas.change(team.owner.user, None, quotas.Limits(import_bytes=2 * size - 1))
    job = imports.start_import(team.researcher, path, name="one")
    with pytest.raises(quotas.OverQuota) as refused:
        imports.start_import(team.researcher, path, name="two")
    assert f"{size - 1:,} are left" in refused.value.fields["file"]
    ImportJob.objects.filter(pk=job.pk).update(state="failed")  # and it has made no version
    imports.start_import(team.researcher, path, name="two")


@pytest.mark.django_db(transaction=True)
def test_of_imports_at_once_no_more_begin_than_there_is_room_for(tmp_path):
    team, path = make_team(), a_file(tmp_path)
    quotas.change(team.owner.user, None, quotas.Limits(imports_at_once=2))

    def begin(number):
        try:
            return imports.start_import(team.researcher, path, name=f"set {number}")
        except quotas.OverQuota as refused:
            return refused

    got = concurrently([lambda number=number: begin(number) for number in range(8)])
    assert sum(isinstance(each, ImportJob) for each in got) == ImportJob.objects.count() == 2
    assert sum(isinstance(each, quotas.OverQuota) for each in got) == 6
