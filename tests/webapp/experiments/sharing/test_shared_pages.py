"""The pages that a link opens for a person without an account: only its own runs, with headers that keep the address secret, and nothing
after its end.
"""

import json
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.team import browser
from webapp.accounts.members.services import change_role, remove_member
from webapp.accounts.models import Role, User
from webapp.accounts.workspaces.services import allow_share_links
from webapp.core.models import AuditEntry
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Run, RunValue, SharedRun, ShareLink
from webapp.experiments.sharing import comparison_contents, public, services

pytestmark = pytest.mark.django_db
ADDRESSES = ("", "/compare", "/curves?key=eval/score")
AS_SCRIPT = {"Accept": "application/json"}


@pytest.fixture(autouse=True)
def counted_anew():
    cache.clear()


@pytest.fixture
def stranger() -> Client:
    return Client()


def opens(secret: str) -> list[int]:
    """Each address of the link, for a person without cookies."""
    return [Client().get(f"/shared/{secret}{rest}").status_code for rest in ADDRESSES]


def test_a_stranger_sees_the_runs_of_the_link(stranger, link, two):
    told = stranger.get(f"/shared/{link[1]}/compare").json()
    assert [(run["id"], run["name"], run["seed"]) for run in told["runs"]] == [(1, "ours 0", 0), (2, "ours 1", 1)]
    assert told["keys"] == ["eval/score"] and told["metrics"][0]["last"] == [0.25, 1.25]
    assert told["families"][0]["runs"] == [0, 1] and told["finals"][0]["families"][0]["n"] == 2
    assert [row["path"] for row in told["config"]] == ["seed"]
    curves = stranger.get(f"/shared/{link[1]}/curves?key=eval/score").json()
    assert [(curve["run"], curve["values"]) for curve in curves["curves"]] == [(1, [0.25]), (2, [1.25])]


def test_the_page_leads_nowhere_sets_no_cookie_and_names_nobody(stranger, link, team):
    answer = stranger.get(f"/shared/{link[1]}")
    text = answer.content.decode()
    assert answer.status_code == 200 and not answer.cookies and not stranger.cookies
    assert "<a " not in text.replace('<a class="skip" href="#content">', "")
    assert "<form" not in text and "csrf" not in text and "main.js" not in text
    for said in ("Rosa", "example.org", "Lab", "For the paper", "/api/", "/runs/", "ws/"):
        assert said not in text, said


def test_whoever_is_signed_in_gets_the_same_page(stranger, link, team):
    path = f"/shared/{link[1]}"
    plain = stranger.get(path).content
    assert browser(team.owner).get(path).content == plain == browser(team.outsider).get(path).content


# ---- nothing but the link's own runs ----


def ways_to_another(run: Run) -> list[str]:
    """Everything that could name another run, at every address of a link."""
    asked = [f"{name}={run.pk}" for name in ("ids", "run", "runs", "id", "baseline", "link", "workspace", "place")]
    asked += ["q=is:any", f"q=run:{run.pk}", f"ids={run.pk}&keys=eval/kept_back,eval/far_away", "keys=eval/kept_back"]
    asked += ["key=eval/kept_back", "key=eval/far_away"]
    tails = ("", "/compare", "/curves")
    return [f"{tail}?{each}" for tail in tails for each in asked] + [f"{tail}/{run.pk}" for tail in tails] + [
        f"/runs/{run.pk}", f"/compare/{run.pk}?ids={run.pk}", f"/../runs/{run.pk}",
    ]  # fmt: skip


@pytest.mark.parametrize("whose", ["secret_run", "elsewhere"])
def test_no_address_of_a_link_shows_another_run(request, stranger, link, whose):
    """A run of the same workspace, and one of another: by query, by id, by key, by path."""
    run = request.getfixturevalue(whose)
    for rest in ways_to_another(run):
        answer = stranger.get(f"/shared/{link[1]}{rest}")
        assert answer.status_code in (200, 404), rest
        text = answer.content.decode()
        for said in ("kept back", "kept_back", "far away", "far_away", "0.777", "0.888"):
            assert said not in text.replace('"key":"eval/kept_back"', "").replace('"key":"eval/far_away"', ""), rest


@pytest.mark.parametrize("whose", ["secret_run", "elsewhere"])
def test_a_link_opens_nothing_else_of_the_server(request, link, whose):
    """The secret works neither as a token nor as a path into the API."""
    run, secret = request.getfixturevalue(whose), link[1]
    script = Client(headers={"authorization": f"Bearer {secret}"})
    for path in (
        "/api/v1/me",
        f"/api/v1/runs/{run.pk}",
        f"/api/v1/runs/table/compare?ids={run.pk}",
        "/api/v1/share-links",
    ):
        assert script.get(path).status_code == 401, path
    assert script.get(f"/runs/{run.pk}").status_code == 302


def test_a_row_that_names_the_run_of_another_workspace_shows_nothing(stranger, link, elsewhere):
    """No service writes such a row, but reading must not rely on that."""
    SharedRun.objects.create(link=link[0], run=elsewhere, place=7)
    assert [run["name"] for run in stranger.get(f"/shared/{link[1]}/compare").json()["runs"]] == ["ours 0", "ours 1"]


def test_no_id_of_the_workspace_is_told(team, allowed, two):
    """The runs are shared in another order than that of their ids."""
    _, secret = services.share(team.researcher, two[::-1])
    body = Client().get(f"/shared/{secret}/compare").json()
    curves = Client().get(f"/shared/{secret}/curves?key=eval/score").json()
    assert [(run["id"], run["name"]) for run in body["runs"]] == [(1, "ours 1"), (2, "ours 0")]
    assert {curve["run"]: curve["values"] for curve in curves["curves"]} == {1: [1.25], 2: [0.25]}


def test_long_texts_and_addresses_of_a_config_are_not_shown(stranger, link, two):
    hidden = [
        "Answer as a pirate would. " * 4,
        "http://10.0.0.7:8000",
        "rosa@example.org",
        "/srv/models/x",
        "a\nb",
        "gpu7:8000",
    ]
    column = two[0].values.get(column__path="seed").column
    for text in hidden:
        RunValue.objects.filter(run=two[0], column=column).update(number=None, text=text)
        told = stranger.get(f"/shared/{link[1]}/compare").content.decode()
        assert comparison_contents.HIDDEN in told and json.dumps(text)[1:-1] not in told, text
    RunValue.objects.filter(run=two[0], column=column).update(number=None, text="HuggingFaceTB/SmolLM2-135M")
    assert "HuggingFaceTB/SmolLM2-135M" in stranger.get(f"/shared/{link[1]}/compare").content.decode()


def test_why_runs_do_not_compare_is_told_without_names(link, two, monkeypatch):
    monkeypatch.setattr(
        "webapp.experiments.runs.comparability.unlike", lambda runs: ["data Secret v3, where ours 1 has Demo v1", ""]
    )
    told = Client().get(f"/shared/{link[1]}/compare").json()
    assert told["unlike"] == {"1": comparison_contents.UNLIKE}


def test_the_baseline_is_the_links_until_another_is_chosen(team, allowed, two, launch):
    runs = [*two, scored_apart(launch)]
    _, secret = services.share(team.researcher, runs, baseline=two[0].pk)
    asked = {
        rest: Client().get(f"/shared/{secret}/compare{rest}").json()["baseline"]
        for rest in ("", "?baseline=3", "?baseline=0", "?baseline=x")
    }
    assert asked == {"": 0, "?baseline=3": 1, "?baseline=0": None, "?baseline=x": 0}


def scored_apart(launch) -> Run:
    return launch(name="apart", config={"steps": 8, "seed": 0})


# ---- headers, methods, limits ----


@pytest.mark.parametrize("rest", ADDRESSES)
@pytest.mark.parametrize("secret", ["right", "wrong"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_every_answer_keeps_the_address_secret(stranger, link, rest, secret, method):
    answer = getattr(stranger, method)(f"/shared/{link[1] if secret == 'right' else 'x'}{rest}")
    assert answer.status_code == (405 if method == "post" else 200 if secret == "right" else 404)
    assert answer["Cache-Control"] == "no-store"
    assert answer["Referrer-Policy"] == "no-referrer"
    assert "noindex" in answer["X-Robots-Tag"]
    assert (
        "default-src 'self'" in answer["Content-Security-Policy"] and "unsafe" not in answer["Content-Security-Policy"]
    )
    assert answer["X-Frame-Options"] == "DENY"


def test_nothing_is_written_by_any_method(link):
    before = ShareLink.objects.values().get()
    for method in ("post", "put", "patch", "delete", "options", "head"):
        for rest in ADDRESSES:
            assert getattr(Client(), method)(f"/shared/{link[1]}{rest}").status_code == 405, (method, rest)
    assert ShareLink.objects.values().get() == before


def test_one_address_is_counted_whatever_it_guesses(link, monkeypatch):
    monkeypatch.setattr(public, "PER_MINUTE", 3)
    guesses = [Client().get(f"/shared/guess{i}").status_code for i in range(4)]
    assert guesses == [404, 404, 404, 429]
    refused = [Client().get(f"/shared/{secret}") for secret in (link[1], "guess")]
    assert [answer.status_code for answer in refused] == [429, 429], (
        "right or wrong, who has asked too often hears the same"
    )
    assert int(refused[0]["Retry-After"]) > 0 and refused[0]["Cache-Control"] == "no-store"
    assert Client(REMOTE_ADDR="203.0.113.9").get(f"/shared/{link[1]}").status_code == 200


def test_a_link_has_so_many_seconds_of_computing_a_minute(link, monkeypatch):
    monkeypatch.setattr("webapp.core.requests.limits.COMPUTING_S", 0.001)
    assert 429 in [Client(REMOTE_ADDR=f"203.0.113.{i}").get(f"/shared/{link[1]}/compare").status_code for i in range(4)]


# ---- the ends of a link ----


def wrong_in_every_way(team, link, two) -> dict[str, str]:
    """Secrets that open nothing, by the reason."""
    found = {"wrong": "x" * 43, "empty of runs": services.share(team.researcher, two)[1]}
    SharedRun.objects.exclude(link=link[0]).delete()
    for why in ("revoked", "expired"):
        row, secret = services.share(team.researcher, two)
        found[why] = secret
        field = "withdrawn_at" if why == "revoked" else "expires_at"
        ShareLink.objects.filter(pk=row.pk).update(**{field: timezone.now()})
    return found


@pytest.mark.parametrize("headers", [{}, AS_SCRIPT], ids=["page", "script"])
def test_a_refusal_does_not_tell_why(team, link, two, headers):
    answers = {}
    for why, secret in wrong_in_every_way(team, link, two).items():
        for rest in ADDRESSES:
            with CaptureQueriesContext(connection) as asked:
                answer = Client().get(f"/shared/{secret}{rest}", headers=headers)
            text = answer.content.decode().replace(answer["X-Request-Id"], "")
            told = (answer.status_code, text, tuple(sorted(set(answer.headers) - {"X-Request-Id"})))
            answers[why, rest] = (told, len(asked) if why != "empty of runs" else None)
    assert len({told for told, _ in answers.values()}) == 1
    assert next(iter(answers.values()))[0][0] == 404
    assert len({n for _, n in answers.values() if n is not None}) == 1, "as many statements, whatever the reason"


def test_a_link_ends_in_the_middle_of_a_session(team, stranger, link):
    assert (
        stranger.get(f"/shared/{link[1]}").status_code == 200 == stranger.get(f"/shared/{link[1]}/compare").status_code
    )
    services.revoke(team.owner, link[0])
    answer = stranger.get(f"/shared/{link[1]}/curves?key=eval/score", headers=AS_SCRIPT)
    assert answer.status_code == 404 and "This link shows nothing" in answer.json()["error"]["message"]
    assert opens(link[1]) == [404] * 3


def test_a_link_expires(link):
    ShareLink.objects.update(expires_at=timezone.now() + timedelta(seconds=60))
    assert opens(link[1]) == [200] * 3
    ShareLink.objects.update(expires_at=timezone.now())
    assert opens(link[1]) == [404] * 3


def test_without_an_end_it_stays(team, allowed, two):
    row, secret = services.share(team.researcher, two, days=None)
    assert row.expires_at is None and opens(secret) == [200] * 3


def demoted(team):
    change_role(team.owner, team.researcher, Role.REVIEWER)


def removed(team):
    remove_member(team.owner, team.researcher)


def closed(team):
    User.objects.filter(pk=team.researcher.user_id).update(is_active=False)


def forbidden(team):
    allow_share_links(team.owner, False)


@pytest.mark.parametrize("end", [demoted, removed, closed, forbidden])
def test_a_link_ends_with_what_it_rests_on(team, link, end):
    assert opens(link[1]) == [200] * 3
    end(team)
    assert opens(link[1]) == [404] * 3


def test_a_link_of_somebody_who_was_promoted_goes_on(team, link):
    change_role(team.owner, team.researcher, Role.OWNER)
    assert opens(link[1]) == [200] * 3


def test_a_deleted_run_is_gone_from_the_link_and_the_last_takes_it_along(team, link, two):
    Run.objects.update(state=Run.State.FINISHED)
    lifecycle.delete(team.owner, two[0])
    told = Client().get(f"/shared/{link[1]}/compare").json()
    assert [run["name"] for run in told["runs"]] == ["ours 1"]
    assert b"Comparison of 1 run" in Client().get(f"/shared/{link[1]}").content
    lifecycle.delete(team.owner, two[1])
    assert opens(link[1]) == [404] * 3


def test_the_first_opening_is_told_once_and_the_last_is_kept(team, link):
    Client(REMOTE_ADDR="203.0.113.9").get(f"/shared/{link[1]}")
    entry = AuditEntry.objects.get(action="share_link.first_opened")
    assert (entry.actor, entry.workspace_id, entry.address) == (None, team.workspace.pk, "203.0.113.9")
    row = ShareLink.objects.get()
    assert row.first_opened_at == row.last_opened_at
    ShareLink.objects.update(last_opened_at=row.last_opened_at - timedelta(minutes=5))
    Client().get(f"/shared/{link[1]}")
    again = ShareLink.objects.get()
    assert again.first_opened_at == row.first_opened_at and again.last_opened_at >= row.last_opened_at
    assert AuditEntry.objects.filter(action="share_link.first_opened").count() == 1
