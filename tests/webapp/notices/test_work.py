"""People watch evaluations, imports, curations and jobs that somebody else has launched."""

import pytest

from tests.team import ApiClient, browser
from webapp.datasets.columns.filters import parse
from webapp.datasets.curation import runner
from webapp.datasets.curation import services as curating
from webapp.datasets.models import ImportJob
from webapp.evaluation.models import Evaluation
from webapp.inference.models import RegisteredModel
from webapp.notices import queries, services, words
from webapp.notices.models import Notice, Watch
from webapp.webhooks.services import announce
from webapp.weights import services as weights
from webapp.weights.models import WeightsJob
from webapp.weights.states import move

from .conftest import notice_events

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation(team) -> Evaluation:
    plain = {"workspace": team.workspace, "name": "Judges", "recipe": "study", "config": {}}
    return Evaluation.objects.create(created_by=team.researcher.user, **plain)


@pytest.fixture
def job(team, version) -> WeightsJob:
    made = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="o/m")
    return weights.generate(team.workspace, team.researcher.user, made, version, {"split": ""})


@pytest.fixture
def curation(team, version):
    return curating.derive(team.researcher, version, parse({"domain": "odd"}))


@pytest.fixture
def imported(team) -> ImportJob:
    plain = {"workspace": team.workspace, "dataset_name": "fruit", "file_name": "rows.jsonl", "format": "auto"}
    return ImportJob.objects.create(created_by=team.researcher.user, **plain)


ADDRESSES = {"evaluation": "evaluations", "import": "imports", "curation": "curations", "weights_job": "jobs"}


@pytest.fixture(params=ADDRESSES)
def subject(request):
    fixtures = {"import": "imported", "weights_job": "job"}
    return request.param, request.getfixturevalue(fixtures.get(request.param, request.param))


def test_the_page_has_the_button_and_the_settings_and_the_api_list_it(subject, team):
    kind, thing = subject
    client, address = browser(team.reviewer), f"/{ADDRESSES[kind]}/{thing.pk}"
    page = client.get(address, follow=True).content.decode()
    assert f'action="/watch/{kind}/{thing.pk}"' in page and 'name="on" value="1"' in page
    assert 'aria-pressed="true"' in browser(team.researcher).get(address, follow=True).content.decode()
    answer = client.post(f"/watch/{kind}/{thing.pk}", {"on": "1"}, headers={"hx-request": "true"}).content.decode()
    assert "Watching" in answer and f"You get notices about this {kind.removeprefix('weights_')}" in answer
    assert f'href="{address}"' in client.get("/settings/notices").content.decode()
    api = ApiClient(team.reviewer)
    plain = {"kind": kind, "id": thing.pk, "on": True}
    (listed,) = api.get("/watches").json()["items"]
    assert listed == {**plain, "name": listed["name"]} and listed["name"]
    assert api.post("/watches", {**plain, "on": False}).status_code == 200
    assert [each["on"] for each in api.get("/watches").json()["items"]] == [False]


def test_who_may_not_see_it_cannot_watch_it(subject, team):
    kind, thing = subject
    for membership, refused in ((team.annotator, 403), (team.outsider, 404)):
        assert browser(membership).post(f"/watch/{kind}/{thing.pk}", {"on": "1"}).status_code == refused
    assert not Watch.objects.exists()


def test_a_colleague_who_watches_an_evaluation_hears_how_it_ends(evaluation, team):
    services.watch(team.reviewer, evaluation, True)
    services.watch(team.researcher, evaluation, False)
    announce(team.workspace.pk, "evaluation.failed", {"evaluation": evaluation.pk, "name": "Judges", "reason": "No."})
    assert (
        notice_events(team.reviewer) == ["evaluation.failed"]
        and notice_events(team.researcher) == notice_events(team.owner) == []
    )


def test_a_colleague_who_watches_an_import_or_a_curation_hears_how_it_ends(imported, curation, team):
    for each in (imported, curation):
        services.watch(team.reviewer, each, True)
    announce(team.workspace.pk, "import.failed", {"import": imported.pk, "name": "fruit", "error": "Not JSON."})
    runner.run(curation.pk)  # it finds nothing to keep
    assert notice_events(team.reviewer) == ["import.failed", "curation.failed"]
    assert notice_events(team.researcher) == ["import.failed", "curation.failed"]


def test_a_job_tells_who_asked_for_it_and_who_watches_it_how_it_ends(job, team):
    services.watch(team.reviewer, job, True)
    for state in ("starting", "running"):
        assert move(job, state)
    assert move(job, "failed", problem="The model does not fit.")
    assert (
        notice_events(team.researcher) == notice_events(team.reviewer) == ["weights_job.started", "weights_job.failed"]
    )
    row = Notice.objects.filter(user=team.reviewer.user).latest("id")
    assert words.title(row) == f"Job “{job.title}” failed" and words.text(row) == "The model does not fit."
    assert words.href(row) == f"/jobs/{job.pk}"


def test_who_stops_a_job_is_not_told_of_it(job, team):
    services.watch(team.reviewer, job, True)
    weights.stop(job, team.researcher.user)
    assert notice_events(team.researcher) == [] and notice_events(team.reviewer) == ["weights_job.stopped"]


def test_jobs_of_an_evaluation_are_silent_unless_somebody_watches_them(job, evaluation, team):
    assert queries.watched(team.researcher, job)
    evaluation.jobs.add(job)
    assert not queries.watched(team.researcher, job)
    services.watch(team.reviewer, job, True)
    for state in ("starting", "running", "finished"):
        assert move(job, state)
    assert notice_events(team.researcher) == [] and notice_events(team.reviewer) == [
        "weights_job.started",
        "weights_job.finished",
    ]


def test_a_watch_goes_with_what_it_is_about(subject, team):
    _, thing = subject
    services.watch(team.reviewer, thing, True)
    thing.delete()
    assert not Watch.objects.exists()
