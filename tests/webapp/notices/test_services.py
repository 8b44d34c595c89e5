"""Reading, watching and forgetting notices, with their pages and API."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from tests.team import ApiClient, browser
from webapp.accounts.models import Membership
from webapp.core.problems import Conflict
from webapp.experiments.lifecycle.states import move
from webapp.notices import queries, services
from webapp.notices.models import Notice, NoticeSettings, Watch
from webapp.personal_data import erasing

from ..experiments.sweeps.conftest import runs

pytestmark = pytest.mark.django_db


def tell(membership, count=1, **fields) -> list[Notice]:
    facts = {"name": "run 1", "experiment": "e", "step": 2}
    plain = {"event": "run.finished", "about": "run", "subject": 10**9, "facts": facts, "created_at": timezone.now()}
    rows = [
        Notice(user=membership.user, workspace=membership.workspace, event_id=uuid4(), **(plain | fields))
        for _ in range(count)
    ]
    return Notice.objects.bulk_create(rows)


def test_a_page_lists_what_is_unread_and_marks_it_as_read(run, team):
    move(run, "failed", reason="No memory.")
    client = browser(team.researcher)
    page = client.get("/notices").content.decode()
    assert "failed" in page and "No memory." in page and f'href="/runs/{run.pk}/log"' in page
    assert 'data-unread="1"' in page
    ids = {"ids": str(Notice.objects.get().pk)}
    assert client.post("/notices/read", ids, headers={"x-requested-with": "fetch"}).status_code == 204
    page = client.get("/notices").content.decode()
    assert "You have read everything" in page and 'data-unread="0"' in page
    assert "No memory." in client.get("/notices?show=all").content.decode()


def test_alarms_say_what_they_are_about_and_share_a_line_with_their_like(team):
    plain = {"name": "run 1", "experiment": "e", "step": 9, "role": "", "sweep_name": "rates"}
    for signal, subject in (("flat", "solved"), ("flat", "not solved"), ("length", ""), ("flattery", "")):
        tell(team.researcher, event="run.alarm", sweep=4, facts=plain | {"signal": signal, "subject": subject})
    tell(team.researcher, event="run.alarm", facts=plain | {"signal": "flat", "subject": "solved"})
    tell(team.researcher, event="run.alarm", facts=plain | {"name": "slow rate", "signal": "flat", "subject": "solved"})
    page = browser(team.researcher).get("/notices").content.decode()
    assert "2 runs of sweep “rates” learn nothing" in page and "Run 1 of e learns nothing" in page
    assert "“slow rate” of e learns nothing" in page
    assert "2 runs of sweep “rates” may be gaming their rewards" in page
    assert "Nothing to learn: the prompts are solved, step 9." in page


def test_an_empty_list_says_how_something_comes_here(team):
    assert "No notices yet" in browser(team.reviewer).get("/notices").content.decode()


def test_what_came_of_the_runs_of_a_sweep_shares_a_line(sweep, team):
    row = sweep(seeds=2)
    for trial in (1, 2, 3):
        for run in runs(row, trial):
            move(run, "failed", reason="No memory.")
    page = browser(team.researcher).get("/notices").content.decode()
    assert f"6 runs of sweep “{row.name}” failed" in page and page.count("data-notice") == 1
    client = browser(team.researcher)
    ids = ",".join(str(pk) for pk in Notice.objects.values_list("pk", flat=True))
    client.post("/notices/read", {"ids": ids, "next": "https://elsewhere.example/"})
    assert queries.unread(team.researcher) == 0


def test_what_was_deleted_since_has_no_link(team):
    tell(team.researcher)
    page = browser(team.researcher).get("/notices").content.decode()
    assert "deleted since" in page and "/runs/1000000000" not in page


def test_nobody_reads_or_marks_notices_of_somebody_else_or_of_another_workspace(team):
    (mine,) = tell(team.researcher)
    assert services.mark_read(team.reviewer, [mine.pk]) == services.mark_read(team.outsider) == 0
    assert "run 1" not in browser(team.reviewer).get("/notices?show=all").content.decode().lower()
    assert services.mark_read(team.researcher, [mine.pk, 7]) == 1


def test_who_became_an_annotator_reads_nothing_more(team):
    tell(team.reviewer)
    Membership.objects.filter(pk=team.reviewer.pk).update(role="annotator")
    team.reviewer.refresh_from_db()
    assert queries.unread(team.reviewer) == 0
    client = browser(team.reviewer)
    assert client.get("/notices").status_code == 403 and 'id="bell"' not in client.get("/").content.decode()


def test_the_button_watches_and_stops_watching(run, team):
    client = browser(team.reviewer)
    assert 'name="on" value="1"' in client.get(f"/runs/{run.pk}").content.decode()
    answer = client.post(f"/watch/run/{run.pk}", {"on": "1"}, headers={"hx-request": "true"}).content.decode()
    assert "Watching" in answer and 'aria-pressed="true"' in answer
    assert client.post(f"/watch/run/{run.pk}", {"on": "0", "next": f"/runs/{run.pk}"}).url == f"/runs/{run.pk}"  # type: ignore[attr-defined]
    assert Watch.objects.get().on is False
    assert 'aria-pressed="true"' in browser(team.researcher).get(f"/runs/{run.pk}").content.decode(), "launched it"


def test_the_button_stands_on_sweeps_and_projects_too(sweep, project, team):
    client, row = browser(team.reviewer), sweep(at_once=1)
    for page, action in ((f"/experiments/sweeps/{row.pk}", "sweep"), (f"/projects/{project.pk}", "project")):
        assert f'action="/watch/{action}/' in client.get(page).content.decode()


@pytest.mark.parametrize("path", ["/watch/run/999999", "/watch/judge/1", "/watch/project/999999"])
def test_what_is_not_there_cannot_be_watched(team, path):
    assert browser(team.reviewer).post(path, {"on": "1"}).status_code == 404


def test_nobody_watches_without_end(run, launch, team, monkeypatch):
    monkeypatch.setattr(services, "MOST_WATCHES", 1)
    services.watch(team.reviewer, run, True)
    services.watch(team.reviewer, run, True)
    with pytest.raises(Conflict):
        services.watch(team.reviewer, launch(), True)


def test_the_database_refuses_a_watch_of_two_things_or_twice(run, project, team):
    services.watch(team.reviewer, run, True)
    for subject in ({"run": run, "project": project}, {"run": run}, {}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Watch.objects.create(user=team.reviewer.user, on=True, **subject)


def test_settings_say_whether_one_is_told_of_what_one_launches(team, run):
    client = browser(team.researcher)
    services.watch(team.researcher, run, False)
    page = client.get("/settings/notices").content.decode()
    assert "get no notices" in page and 'name="own" value="1" checked' in page
    client.post("/settings/notices", {})
    assert NoticeSettings.objects.get().own is False
    assert 'name="own" value="1" checked' not in client.get("/settings/notices").content.decode()


def test_the_api_lists_marks_and_watches(team, run):
    move(run, "failed", reason="No memory.")
    api = ApiClient(team.researcher)
    (row,) = api.get("/notices", unread="true").json()["items"]
    assert (row["event"], row["about"], row["subject"], row["text"]) == ("run.failed", "run", run.pk, "No memory.")
    assert api.post("/notices/read", {}).status_code == 422
    assert api.post("/notices/read", {"ids": [row["id"]]}).json() == {"read": 1, "unread": 0}
    assert api.get("/notices", unread="true").json()["items"] == []
    assert api.post("/watches", {"kind": "run", "id": run.pk, "on": False}).status_code == 200
    (watch,) = api.get("/watches").json()["items"]
    assert (watch["kind"], watch["id"], watch["on"]) == ("run", run.pk, False)
    assert api.post("/watches", {"kind": "run", "id": 10**9}).status_code == 404
    assert (
        api.post("/notices/settings", {"own": False}).json()
        == {"own": False, "mail": "never"}
        == api.get("/notices/settings").json()
    )


def test_old_notices_are_forgotten(team):
    now = timezone.now()
    tell(team.researcher, created_at=now - timedelta(days=89))
    tell(team.researcher, created_at=now - timedelta(days=91))
    tell(team.researcher, created_at=now - timedelta(days=40), read_at=now - timedelta(days=31))
    tell(team.researcher, created_at=now - timedelta(days=40), read_at=now - timedelta(days=29))
    assert services.trim() == 2 and Notice.objects.count() == 2


def test_watches_and_notices_go_with_the_person_and_with_the_run(run, team):
    for membership in (team.reviewer, team.researcher):
        services.watch(membership, run, True)
    services.change_settings(team.reviewer, own=False)
    move(run, "failed")
    erasing.erase(team.reviewer.user, team.owner.user)
    assert [row.user_id for row in Notice.objects.all()] == [team.researcher.user_id]
    assert not NoticeSettings.objects.exists() and Watch.objects.count() == 1
    run.delete()
    assert not Watch.objects.exists()
