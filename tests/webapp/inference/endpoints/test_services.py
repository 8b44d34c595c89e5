"""Saving endpoints: refusals at their fields, and the addresses to which a key may be sent."""

import json
import socket
from datetime import timedelta
from decimal import Decimal
from ipaddress import ip_network

import pytest
from django.db import connection
from django.utils import timezone

from trainer.judges.chat import EndpointProblem, Prices
from webapp.core.models import AuditEntry
from webapp.core.network import destinations
from webapp.core.problems import Conflict, Invalid
from webapp.inference.endpoints import services, targets
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.inference.registry import services as registry

from ..conftest import KEY

CHAT = {"name": "judge", "url": "https://api.example.org/v1", "model": "m"}


@pytest.fixture
def public(monkeypatch):
    """Every name resolves to a public address. No network is used."""

    def lookup(host, port, **options):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", port))]

    monkeypatch.setattr(destinations, "getaddrinfo", lookup)


def create(membership, kind="chat", **changes):
    return services.create_endpoint(membership, kind, **{**CHAT, **changes})


def refused_at(call, *args, **kwargs):
    with pytest.raises(Invalid) as refused:
        call(*args, **kwargs)
    return refused.value.fields


def test_a_key_is_sealed_and_comes_out_for_the_client_only(team, public):
    made = create(team.researcher, secret=f" {KEY} ", price_prompt=Decimal("0.5"), price_completion=Decimal(2))
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(e)::text FROM inference_endpoint e")
        assert KEY not in cursor.fetchone()[0]
    assert KEY not in json.dumps(list(AuditEntry.objects.values_list("detail", flat=True)))
    target = targets.endpoint_target(made)
    assert target.key == KEY and target.prices == Prices(Decimal("0.5"), Decimal(2)) and KEY not in repr(target)


def test_a_key_sealed_under_another_secret_key_says_what_to_do(team, public, settings):
    made = create(team.researcher, secret=KEY)
    settings.SECRET_KEY = "x" * 50
    with pytest.raises(EndpointProblem, match="Enter it again"):
        targets.endpoint_target(made)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("name", " "), ("name", "x" * 121), ("model", " "), ("model", "x" * 201)),
        *(
            ("url", ""),
            ("url", "api.example.org"),
            ("url", "https://u:p@api.example.org"),
            ("url", "https://h/v1?key=1"),
        ),
        *(("url", "http://api.example.org/v1"), ("url", "https://" + "x" * 2000)),
        *(("secret", "two words"), ("secret", "line\nbreak"), ("secret", "schlüssel"), ("secret", "x" * 501)),
        *(("concurrency", 0), ("concurrency", 1001), ("timeout_s", float("nan")), ("timeout_s", 0), ("retries", 11)),
        *(("requests_per_minute", 0), ("price_prompt", Decimal(-1)), ("price_completion", Decimal("1e9"))),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(team, public, field, value):
    assert list(refused_at(create, team.researcher, **{field: value})) == [field]
    assert not Endpoint.objects.exists()


def test_all_that_is_wrong_is_said_at_once(team, public):
    assert set(refused_at(create, team.researcher, name="", url="ftp://x", concurrency=0)) == {
        "name",
        "url",
        "concurrency",
    }


def test_private_addresses_are_the_operators_to_open(team, settings):
    for url in ("http://127.0.0.1:8000/v1", "https://localhost/v1", "http://169.254.169.254/v1", "http://[::1]/v1"):
        assert "ENDPOINT_NETWORKS" in refused_at(create, team.researcher, url=url)["url"]
    settings.ENDPOINT_NETWORKS = (ip_network("127.0.0.1/32"),)
    assert create(team.researcher, url="http://127.0.0.1:8000/v1/chat/completions/").url == "http://127.0.0.1:8000/v1"


def test_a_name_that_turns_private_after_it_was_saved_is_not_connected_to(team, chat_server, public, settings):
    made = create(team.researcher, url=f"https://rebinding.example:{chat_server.port}/v1")
    settings.ENDPOINT_NETWORKS = ()
    target = targets.endpoint_target(made)
    assert "not public" in target.refuse("127.0.0.1") and target.refuse("93.184.215.14") == ""


def test_names_are_taken_once_per_workspace(team, public):
    create(team.researcher)
    assert "name" in refused_at(create, team.owner)
    create(team.outsider)


def test_a_key_goes_to_no_other_host(team, public):
    made = create(team.researcher, secret=KEY)
    assert "secret" in refused_at(services.change_endpoint, team.researcher, made, url="https://thief.example/v1")
    made.refresh_from_db()
    assert made.url == CHAT["url"]
    services.change_endpoint(team.researcher, made, url="https://api.example.org/v2", concurrency=3)
    assert targets.endpoint_target(made).key == KEY
    services.change_endpoint(team.researcher, made, url="https://other.example/v1", secret="")
    assert targets.endpoint_target(made).key is None


def test_another_model_is_another_endpoint_once_verdicts_rest_on_it(team, public):
    made = create(team.researcher)
    services.change_endpoint(team.researcher, made, model="other")
    services.mark_used(made)
    assert "model" in refused_at(services.change_endpoint, team.researcher, made, model="third")
    services.change_endpoint(team.researcher, made, model="other", name="renamed", concurrency=2)
    made.refresh_from_db()
    assert (made.model, made.name) == ("other", "renamed")


def test_what_a_probe_found_is_forgotten_with_the_model_it_was_found_of(team, public):
    made = create(team.researcher)
    made.capabilities = {"schema": True, "tokens_field": "max_completion_tokens"}
    made.save()
    target = targets.endpoint_target(made)
    assert target.supports_schema and target.tokens_field == "max_completion_tokens"
    services.change_endpoint(team.researcher, made, model="other")
    assert not targets.endpoint_target(made).supports_schema


def test_fields_of_another_kind_are_refused(team, public):
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="a/b")
    local = services.create_endpoint(team.researcher, "local", name="here", registered_model=model.pk)
    assert local.registered_model == model
    assert "url" in refused_at(services.change_endpoint, team.researcher, local, url="https://api.example.org")
    assert "kind" in refused_at(services.create_endpoint, team.researcher, "oracle", name="x")
    with pytest.raises(Conflict):
        registry.delete(team.researcher, model)
    with pytest.raises(Conflict):
        targets.endpoint_target(local)


def test_models_of_others_cannot_answer(team, public):
    theirs = RegisteredModel.objects.create(workspace=team.outsider.workspace, name="m", source="hub", path="a/b")
    for model_id in (theirs.pk, None):
        fields = refused_at(services.create_endpoint, team.researcher, "local", name="x", registered_model=model_id)
        assert "registered_model" in fields


def test_an_archived_endpoint_answers_nobody_until_it_is_restored(team, public):
    made = create(team.researcher)
    services.archive(team.researcher, made)
    with pytest.raises(Conflict, match="archived"):
        targets.endpoint_target(made)
    services.restore(team.researcher, made)
    assert targets.endpoint_target(made).model == "m"


def test_problems_are_counted_by_kind_with_the_words_of_the_last(team, public):
    made = create(team.researcher)
    services.note_troubles(made, [EndpointProblem("down", "one"), EndpointProblem("down", "two\0")])
    later = timezone.now() + timedelta(minutes=1)
    services.note_troubles(made, [EndpointProblem("down", "three"), EndpointProblem("timeout", "slow")], at=later)
    services.note_troubles(made, [EndpointProblem("budget", "used up")])
    counted = {row.code: (row.count, row.message, row.last_at) for row in made.troubles.all()}
    assert counted == {"down": (3, "three", later), "timeout": (1, "slow", later)}
