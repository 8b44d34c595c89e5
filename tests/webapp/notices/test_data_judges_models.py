"""Notices about datasets, judges and models: each goes to people who watch its object, and is removed when the object is deleted."""

import pytest

from tests.team import ApiClient, browser
from tests.webapp.datasets.conftest import import_rows, row  # noqa: F401 - a fixture
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401 - fixtures
from webapp.datasets import housekeeping
from webapp.datasets.columns.filters import parse
from webapp.datasets.curation import runner
from webapp.datasets.curation import services as curating
from webapp.datasets.ingest import services as imports
from webapp.datasets.models import Dataset
from webapp.datasets.versions import services as versions
from webapp.inference.models import RegisteredModel
from webapp.inference.promotion import services as promotion
from webapp.inference.registry import services as registry
from webapp.judging.judges.services import create_judge, new_version
from webapp.judging.models import Judge
from webapp.notices import queries, services, words
from webapp.notices.models import Notice, Watch

from .conftest import notice_events

pytestmark = pytest.mark.django_db


@pytest.fixture
def dataset(import_rows) -> Dataset:  # noqa: F811
    return import_rows([row("e1"), row("e2", domain="odd")], name="fruit").version.dataset


@pytest.fixture
def judge(team, endpoint) -> Judge:  # noqa: F811
    return create_judge(team.researcher, name="Strict", spec={"kind": "criterion"}, endpoint=endpoint).judge


@pytest.fixture
def model(team):
    def make(name) -> RegisteredModel:
        fields = {"workspace": team.workspace, "name": name, "source": "hub", "path": f"o/{name}"}
        return RegisteredModel.objects.create(**fields)

    return make


def notice_words(membership) -> list[tuple[str, str, str]]:
    rows = Notice.objects.filter(user=membership.user).order_by("id")
    return [(words.title(each), words.text(each), words.href(each)) for each in rows]


def test_who_watches_a_dataset_hears_of_its_imports_curations_and_frozen_versions(dataset, import_rows, team):  # noqa: F811
    services.watch(team.reviewer, dataset, True)
    services.watch(team.owner, dataset, True)
    import_rows([row("e3")], name="fruit")
    import_rows([row("e3")], name="other")
    import_rows('{"key": "e2"}\n', name="fruit")
    version = dataset.versions.get(number=1)
    runner.run(curating.derive(team.researcher, version, parse({"domain": "odd"})).pk)
    versions.freeze(team.owner, version)
    events = ["import.started", "import.finished", "import.started", "import.failed"]
    events += ["curation.started", "curation.finished"]
    assert notice_events(team.owner) == events and notice_events(team.reviewer) == [*events, "version.frozen"]
    assert notice_words(team.reviewer)[-1] == (
        "Dataset “fruit” has a frozen version",
        "Version 1.",
        version_page(dataset, 1),
    )
    assert "version.frozen" not in notice_events(team.researcher)


def version_page(dataset: Dataset, number: int) -> str:
    return f"/datasets/{dataset.pk}/versions/{number}"


def test_who_watches_a_judge_hears_of_its_versions_by_others(judge, team):
    for membership in (team.reviewer, team.owner):
        services.watch(membership, judge, True)
    new_version(team.owner, judge, spec={"kind": "criterion", "retries": 0}, endpoint=judge.versions.get().endpoint)
    assert notice_events(team.owner) == notice_events(team.researcher) == []
    assert notice_words(team.reviewer) == [("Judge “Strict” has a new version", "Version 2.", f"/judges/{judge.pk}")]


def test_who_watches_a_model_hears_of_its_stage_and_of_aliases_that_come_and_go(model, team):
    old, new = model("old"), model("new")
    services.watch(team.reviewer, old, True)
    promotion.move(team.researcher, "champion", old)
    promotion.move(team.researcher, "champion", new)
    promotion.set_stage(team.researcher, old, "retired")
    assert [(title, text) for title, text, _ in notice_words(team.reviewer)] == [
        ("Model “old” has a new alias, @champion", ""),
        ("Model “new” has a new alias, @champion", "It pointed at old before."),
        ("Model “old” came to another stage", "From no stage to Retired."),
    ]
    services.watch(team.reviewer, new, True)
    promotion.move(team.researcher, "champion", old)
    assert len(notice_events(team.reviewer)) == 4, "who watches both is told once"


def test_who_watches_a_model_hears_that_it_lost_its_alias_and_was_taken_off_the_list(model, team):
    old = model("old")
    services.watch(team.reviewer, old, True)
    alias = promotion.move(team.researcher, "champion", old)
    promotion.remove(team.researcher, alias, reason="worse")
    registry.delete(team.researcher, old)
    assert notice_events(team.reviewer) == ["model.alias_moved", "model.alias_removed", "model.deleted"]
    assert [title for title, _, _ in notice_words(team.reviewer)][1:] == [
        "Model “old” has lost an alias, @champion",
        "Model “old” was removed from the list",
    ]
    assert "Model “old” was removed from the list" in browser(team.reviewer).get("/notices").content.decode()


def test_what_one_does_not_want_to_hear_of_is_not_told_through_something_else(model, team):
    old, new = model("old"), model("new")
    promotion.move(team.researcher, "champion", old)
    services.watch(team.reviewer, old, True)
    services.watch(team.reviewer, new, False)
    promotion.move(team.researcher, "champion", new)
    assert notice_events(team.reviewer) == []


def test_nobody_watches_a_dataset_a_judge_or_a_model_because_they_made_it(dataset, judge, model, team):
    assert not any(queries.watched(team.researcher, each) for each in (dataset, judge, model("m")))


@pytest.fixture(params=["dataset", "judge", "model"])
def subject(request, model):
    made = request.getfixturevalue(request.param)
    return request.param, made("m") if request.param == "model" else made


def test_the_page_has_the_button_and_the_settings_and_the_api_list_it(subject, team):
    kind, thing = subject
    client, address = browser(team.reviewer), f"/{kind}s/{thing.pk}"
    page = client.get(address, follow=True).content.decode()
    assert f'action="/watch/{kind}/{thing.pk}"' in page and 'name="on" value="1"' in page
    answer = client.post(f"/watch/{kind}/{thing.pk}", {"on": "1"}, headers={"hx-request": "true"}).content.decode()
    assert "Watching" in answer and f"You get notices about this {kind}" in answer
    assert 'aria-pressed="true"' in client.get(address, follow=True).content.decode()
    assert f'href="{address}">{thing.name}</a>' in client.get("/settings/notices").content.decode()
    api = ApiClient(team.reviewer)
    plain = {"kind": kind, "id": thing.pk, "on": True}
    assert api.get("/watches").json()["items"] == [{**plain, "name": thing.name}]
    assert api.post("/watches", {**plain, "on": False}).status_code == 200
    assert [each["on"] for each in api.get("/watches").json()["items"]] == [False]


def test_who_may_not_see_it_cannot_watch_it(subject, team):
    kind, thing = subject
    assert browser(team.annotator).post(f"/watch/{kind}/{thing.pk}", {"on": "1"}).status_code == 403
    assert browser(team.outsider).post(f"/watch/{kind}/{thing.pk}", {"on": "1"}).status_code == 404
    assert not Watch.objects.exists()


def test_a_watch_goes_with_what_it_is_about(dataset, judge, model, team):
    thing = model("m")
    for each in (dataset, judge, thing):
        services.watch(team.reviewer, each, True)
    registry.delete(team.owner, thing)
    assert sorted(each.kind for each in Watch.objects.all()) == ["dataset", "judge"]
    assert housekeeping.delete(team.owner, dataset)
    assert [each.kind for each in Watch.objects.all()] == ["judge"]
    judge.delete()
    assert not Watch.objects.exists()


def test_an_import_by_another_workspace_into_a_dataset_of_the_same_name_is_not_told(dataset, team, tmp_path):
    services.watch(team.reviewer, dataset, True)
    (tmp_path / "rows.jsonl").write_text('{"prompt": "p"}\n')
    imports.start_import(team.outsider, tmp_path / "rows.jsonl", name="fruit")
    assert notice_events(team.reviewer) == []
