"""Aliases and stages of models: the model that an alias points at, its moves, refusals, and the use by a run."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.concurrency import concurrently
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.inference.models import ModelAlias, ModelPromotion, RegisteredModel
from webapp.inference.promotion import queries, services
from webapp.inference.registry import services as registry


def model_of(team, name: str) -> RegisteredModel:
    return RegisteredModel.objects.create(workspace=team.workspace, name=name, source="hub", path=f"o/{name}")


@pytest.fixture
def old(team, db):
    return model_of(team, "old")


@pytest.fixture
def new(team, db):
    return model_of(team, "new")


def promotion_rows(team) -> list[tuple[str, str, str, str]]:
    return [(row.kind, row.name or row.to, row.model_name, row.before) for row in queries.history(team.workspace.pk)]


def test_an_alias_moves_and_its_history_tells_from_where_and_why(api, team, old, new):
    made = api.put("/models/aliases/champion", {"model": old.pk, "reason": "the first"})
    assert made.status_code == 200 and made.json()["model"] == {"id": old.pk, "name": "old"}
    assert (
        api.put("/models/aliases/@champion", {"model": new.pk, "reason": "0.1 better"}).json()["model"]["id"] == new.pk
    )
    assert api.get("/models/aliases/champion").json()["model"]["name"] == "new"
    assert [row["name"] for row in api.get("/models/aliases").json()["items"]] == ["champion"]
    told = api.get("/models/promotions?alias=champion").json()["items"]
    assert [(row["model_name"], row["before"], row["reason"]) for row in told] == [
        ("new", "old", "0.1 better"),
        ("old", "", "the first"),
    ]
    assert api.get(f"/models/{new.pk}").json()["aliases"] == ["champion"]
    assert api.get(f"/models/{old.pk}").json()["aliases"] == []
    assert [row["model_name"] for row in api.get(f"/models/promotions?model={old.pk}").json()["items"]] == ["old"]


def test_aliases_are_listed_in_pages_by_name(api, old):
    for name in ("champion", "baseline", "a"):
        api.put(f"/models/aliases/{name}", {"model": old.pk})
    first = api.get("/models/aliases?limit=2").json()
    second = api.get(f"/models/aliases?limit=2&cursor={first['next']}").json()
    assert [row["name"] for row in first["items"]] == ["a", "baseline"] and second["next"] is None
    assert [row["name"] for row in second["items"]] == ["champion"]
    assert api.get("/models/aliases?cursor=x").status_code == 422


def test_the_same_move_again_changes_nothing(team, old):
    services.move(team.researcher, "champion", old)
    services.move(team.researcher, "champion", old, expected="somebody else's")
    assert promotion_rows(team) == [("moved", "champion", "old", "")]
    assert AuditEntry.objects.filter(action="model.alias_moved").count() == 1


@pytest.mark.parametrize("name", ["", "@", "Champion", "1st", "a b", "x" * 61, "ü"])
def test_what_is_no_alias_is_refused_at_the_name(team, old, name):
    with pytest.raises(Invalid) as refused:
        services.move(team.researcher, name, old)
    assert set(refused.value.fields) == {"name"} and not ModelAlias.objects.exists()


def test_who_saw_another_model_there_is_told_and_moves_nothing(api, team, old, new):
    services.move(team.researcher, "champion", old)
    refused = api.put("/models/aliases/champion", {"model": new.pk, "expected": ""})
    assert refused.status_code == 409 and "points at old" in refused.json()["error"]["message"]
    services.remove(team.researcher, ModelAlias.objects.get())
    refused = api.put("/models/aliases/champion", {"model": new.pk, "expected": "old"})
    assert refused.status_code == 409 and "removed" in refused.json()["error"]["message"]
    assert not ModelAlias.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_many_who_saw_the_same_one_moves_it(team):
    models = [model_of(team, f"m{i}") for i in range(8)]
    moves = [lambda model=model: services.move(team.researcher, "champion", model, expected="") for model in models]
    outcomes = concurrently(moves)
    assert sum(isinstance(each, ModelAlias) for each in outcomes) == 1
    assert sum(isinstance(each, Conflict) for each in outcomes) == 7
    assert len(promotion_rows(team)) == 1 and promotion_rows(team)[0][2] == ModelAlias.objects.get().model.name


@pytest.mark.django_db(transaction=True)
def test_moves_in_the_same_moment_end_one_after_the_other(team):
    models = [model_of(team, f"m{i}") for i in range(8)]
    concurrently([lambda model=model: services.move(team.researcher, "champion", model) for model in models])
    told = list(reversed(promotion_rows(team)))
    assert len(told) == 8 and ModelAlias.objects.get().model.name == told[-1][2]
    # each move began at the model of the move before
    assert [row[3] for row in told] == ["", *[row[2] for row in told[:-1]]]


@pytest.mark.django_db(transaction=True)
def test_no_alias_points_at_a_model_that_is_archived_in_the_same_moment(team):
    for i in range(5):
        row = model_of(team, f"m{i}")
        concurrently(
            [
                lambda row=row: registry.archive_model(team.researcher, row),
                lambda row=row, i=i: _or_invalid(lambda: services.move(team.researcher, f"a{i}", row)),
            ]
        )
    assert not ModelAlias.objects.exclude(model__archived_at=None).exists()


def _or_invalid(call):
    try:
        return call()
    except Invalid as refused:
        return refused


def test_an_archived_model_gets_no_alias_and_one_with_an_alias_stays(api, team, old):
    services.move(team.researcher, "champion", old)
    assert api.post(f"/models/{old.pk}/archive").json()["error"]["message"].startswith("@champion points at")
    assert api.delete(f"/models/{old.pk}").status_code == 409
    assert api.delete("/models/aliases/champion").status_code == 204
    assert api.delete("/models/aliases/champion").status_code == 404
    assert api.post(f"/models/{old.pk}/archive").status_code == 200
    refused = api.put("/models/aliases/champion", {"model": old.pk})
    assert refused.status_code == 422 and refused.json()["error"]["fields"][0]["path"] == "model"


def test_the_history_outlives_the_model(api, team, old):
    services.move(team.researcher, "champion", old)
    services.remove(team.researcher, ModelAlias.objects.get(), reason="never good")
    assert api.delete(f"/models/{old.pk}").status_code == 204
    told = api.get("/models/promotions").json()["items"]
    assert [(row["kind"], row["model"], row["model_name"]) for row in told] == [
        ("removed", None, "old"),
        ("moved", None, "old"),
    ]


def test_a_stage_is_noted_once_and_an_unknown_one_refused(api, team, old):
    assert api.put(f"/models/{old.pk}/stage", {"stage": "candidate"}).json() == {"stage": "candidate"}
    api.put(f"/models/{old.pk}/stage", {"stage": "production", "reason": "passed the audit"})
    api.put(f"/models/{old.pk}/stage", {"stage": "production", "reason": "again"})
    assert api.put(f"/models/{old.pk}/stage", {"stage": "best"}).status_code == 422
    assert promotion_rows(team) == [("stage", "production", "old", "candidate"), ("stage", "candidate", "old", "")]
    assert api.get(f"/models/{old.pk}").json()["stage"] == "production"


def test_the_list_takes_no_more_queries_for_more_aliases(api, team, old, new):
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries_made:
            api.get("/models")
        return len(queries_made)

    services.move(team.researcher, "a", old)
    asked()
    before = asked()
    for name in "bcdefg":
        services.move(team.researcher, name, model_of(team, f"m-{name}"))
    assert asked() == before


def test_another_workspace_has_its_own(team, old):
    services.move(team.researcher, "champion", old)
    assert queries.named(team.outsider.workspace_id, "@champion") is None
    assert queries.named(team.workspace.pk, "@champion") == old


def test_a_model_that_is_called_like_an_alias_comes_first(team, old):
    services.move(team.researcher, "champion", old)
    namesake = model_of(team, "@champion")
    assert queries.named(team.workspace.pk, "@champion") == namesake


class TestPages:
    def test_a_model_is_promoted_from_its_page(self, team, client, old, new):
        client.force_login(team.researcher.user)
        services.move(team.researcher, "champion", old)
        page = client.get(f"/models/{new.pk}/promote").content.decode()
        assert 'name="seen-champion" value="old"' in page
        given = {"name": "@champion", "reason": "better", "seen-champion": "old"}
        assert client.post(f"/models/{new.pk}/promote", given).status_code == 302
        shown = client.get(f"/models/{new.pk}").content.decode()
        assert "@champion" in shown and "better" in shown
        assert "@champion" in client.get("/models").content.decode()

    def test_a_move_by_somebody_else_in_between_is_said_at_the_alias(self, team, client, old, new):
        client.force_login(team.researcher.user)
        services.move(team.researcher, "champion", new)
        third = model_of(team, "third")
        refused = client.post(f"/models/{third.pk}/promote", {"name": "champion", "seen-champion": "old"})
        assert refused.status_code == 422 and "points at new now" in refused.content.decode()
        assert ModelAlias.objects.get().model == new

    def test_a_bad_alias_is_said_at_its_field(self, team, client, old):
        client.force_login(team.researcher.user)
        refused = client.post(f"/models/{old.pk}/promote", {"name": "The Best"})
        assert refused.status_code == 422 and "small letter" in refused.content.decode()

    def test_a_stage_is_changed_and_shown(self, team, client, old):
        client.force_login(team.researcher.user)
        assert client.post(f"/models/{old.pk}/stage", {"stage": "production", "reason": "audited"}).status_code == 302
        shown = client.get(f"/models/{old.pk}").content.decode()
        assert "In production" in shown and "audited" in shown

    def test_an_alias_is_removed_after_a_question(self, team, client, old):
        client.force_login(team.researcher.user)
        services.move(team.researcher, "champion", old)
        asked = client.post("/models/aliases/champion/remove")
        assert asked.status_code == 200 and ModelAlias.objects.exists()
        client.post("/models/aliases/champion/remove", {"sure": "1"})
        assert not ModelAlias.objects.exists()
        assert "removed" in client.get("/models/aliases").content.decode()

    def test_no_aliases_yet(self, team, client):
        client.force_login(team.reviewer.user)
        assert "No aliases yet" in client.get("/models/aliases").content.decode()


def test_history_is_never_rewritten(team, old, new):
    services.move(team.researcher, "champion", old)
    first = ModelPromotion.objects.get()
    services.move(team.researcher, "champion", new)
    registry.change_model(team.researcher, old, name="older")
    first.refresh_from_db()
    assert (first.model_name, first.before) == ("old", "")
