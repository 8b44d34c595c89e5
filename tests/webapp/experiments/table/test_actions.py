"""Labels and actions on many runs: who may use them, undo, and two people at the same time."""

import re
from datetime import timedelta
from functools import partial

import pytest
from django.test import Client
from django.utils import timezone

from tests.concurrency import concurrently
from tests.team import ApiClient, browser
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import Run, RunChange, RunStar, RunTag
from webapp.experiments.table import queries, services
from webapp.tracking.models import LoggedRun

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs(make):
    return [make(name) for name in ("alpha", "beta", "gamma")]


@pytest.fixture
def act(api):
    def _act(action: str, runs=(), **body):
        return api.post("/runs/table/actions", {"action": action, "runs": [run.pk for run in runs], **body})

    return _act


def tags(run) -> list[str]:
    return list(RunTag.objects.filter(run=run).order_by("name").values_list("name", flat=True))


def test_a_tag_on_many_is_undone_where_it_was_new_only(act, api, runs, team):
    services.set_tags(team.researcher, runs[0], ["kept"])
    told = act("tag", runs, word="Kept").json()
    assert (told["changed"], told["word"]) == (2, "kept")
    assert api.post(f"/runs/table/changes/{told['id']}/undo").json()["undone_at"]
    assert [tags(run) for run in runs] == [["kept"], [], []]
    assert api.post(f"/runs/table/changes/{told['id']}/undo").status_code == 409
    actions = (
        AuditEntry.objects.filter(action__in=["run.tag", "run.undo_tag"])
        .order_by("pk")
        .values_list("action", flat=True)
    )
    assert list(actions) == ["run.tag"] * 2 + ["run.undo_tag"] * 2


def test_taking_a_tag_off_and_undoing_it(act, api, runs, team):
    services.set_tags(team.researcher, runs[0], ["old"])
    told = act("untag", runs, word="old").json()
    assert told["changed"] == 1 and tags(runs[0]) == []
    api.post(f"/runs/table/changes/{told['id']}/undo")
    assert [tags(run) for run in runs] == [["old"], [], []]


def test_what_is_under_way_is_not_archived(act, api, runs):
    Run.objects.filter(pk=runs[0].pk).update(state="running")
    told = act("archive", runs).json()
    assert told["changed"] == 2
    assert Run.objects.filter(archived_at__isnull=True).get() == runs[0]
    assert act("archive", runs).json() | {"changed": 0, "id": None} == act("archive", runs).json()
    api.post(f"/runs/table/changes/{told['id']}/undo")
    assert not Run.objects.filter(archived_at__isnull=False).exists()


def test_undoing_a_group_leaves_what_was_grouped_anew(act, api, runs, team):
    services.group(team.researcher, [runs[0].pk], "first")
    told = act("group", runs, word="second").json()
    services.group(team.owner, [runs[2].pk], "third")
    api.post(f"/runs/table/changes/{told['id']}/undo")
    assert [Run.objects.get(pk=run.pk).group for run in runs] == ["first", "", "third"]


@pytest.mark.parametrize(
    ("action", "opposite", "word"),
    [("archive", "restore", ""), ("tag", "untag", "old"), ("group", "group", "mine")],
)
def test_undoing_leaves_runs_that_somebody_has_changed_in_the_same_way_since(act, api, runs, action, opposite, word):
    def state(run):
        run.refresh_from_db()
        return run.archived_at is not None, tags(run), run.group

    told = act(action, runs, word=word).json()
    act(opposite, runs[:1], word="" if action == "group" else word)
    act(action, runs[:1], word=word)  # another person wants it as it was
    kept = state(runs[0])
    assert api.post(f"/runs/table/changes/{told['id']}/undo").json()["changed"] == 2
    assert state(runs[0]) == kept and kept != state(runs[1]) == (False, [], "")


@pytest.mark.parametrize("by", ["page", "api"])
def test_undoing_leaves_a_tag_that_somebody_has_set_for_one_run_since(act, api, runs, as_owner, team, by):
    def set_tags(run, *names):
        if by == "page":
            seen = ",".join(tags(run))
            as_owner.post(f"/runs/{run.pk}/labels", {"tags": ", ".join(names), "seen-tags": seen})
        else:
            ApiClient(team.owner).patch(f"/runs/{run.pk}/labels", {"tags": names})

    told = act("tag", runs, word="old").json()
    set_tags(runs[0])
    set_tags(runs[0], "old")
    set_tags(runs[1], "old", "other")  # its tag stays as the action set it
    assert api.post(f"/runs/table/changes/{told['id']}/undo").json()["changed"] == 2
    assert [tags(run) for run in runs] == [["old"], ["other"], []]


def test_an_undo_reads_no_runs_of_later_changes_but_its_own(act, runs, team, django_assert_num_queries):
    change = RunChange.objects.get(pk=act("tag", runs[:2], word="old").json()["id"])
    for _ in range(3):
        services.untag(team.owner, [run.pk for run in runs[1:]], "old")
        services.tag(team.owner, [run.pk for run in runs[1:]], "old")
    with django_assert_num_queries(1):
        assert list(services._changed_since(change)) == [runs[1]]


def test_all_that_a_query_finds_is_changed_or_nothing(act, runs, monkeypatch):
    assert act("tag", q="alpha", word="a").json()["changed"] == 1
    monkeypatch.setattr(services, "MAX_AT_ONCE", 2)
    refused = act("tag", q="", word="b")
    assert refused.status_code == 422 and refused.json()["error"]["fields"][0]["path"] == "q"
    assert not RunTag.objects.filter(name="b").exists()
    assert act("tag", word="b").json()["error"]["fields"][0]["path"] == "runs"


def test_stopping_many_stops_those_under_way(act, runs):
    Run.objects.filter(pk=runs[0].pk).update(state="queued")
    told = act("stop", runs).json()
    assert (told["changed"], told["id"]) == (1, None)
    assert Run.objects.get(pk=runs[0].pk).state == "stopped"


def test_many_are_paused_and_resumed_and_those_that_cannot_say_why(act, runs):
    ids = [run.pk for run in runs]
    Run.objects.filter(pk__in=ids[:2]).update(state="queued", ended_at=None)
    told = act("pause", runs).json()
    assert (told["changed"], told["id"], told["refused"]) == (2, None, [])
    assert act("pause", runs).json()["changed"] == 0, "they are so already"
    Run.objects.filter(pk=ids[1]).update(time_limit=timedelta(hours=1), under_way=timedelta(hours=2))
    told = act("resume", runs).json()
    assert told["changed"] == 1 and len(told["refused"]) == 1
    assert "Its time limit is used up" in told["refused"][0]
    states = dict(Run.objects.filter(pk__in=ids).values_list("pk", "state"))
    assert (states[ids[0]], states[ids[1]]) == ("queued", "paused")
    assert all(states[pk] not in ("queued", "paused") for pk in ids[2:]), "what is over stays so"


@pytest.mark.parametrize(("action", "does"), [("stop", "stop"), ("pause", "pause")])
def test_a_run_that_somebody_deletes_meanwhile_keeps_no_other_from_being_stopped(act, runs, monkeypatch, action, does):
    ids = sorted(run.pk for run in runs)
    Run.objects.filter(pk__in=ids).update(state="queued", ended_at=None)
    usual = getattr(lifecycle, does)

    def late(membership, run):
        Run.objects.filter(pk=ids[0], pk__in=[run.pk]).delete()
        return usual(membership, run)

    monkeypatch.setattr(lifecycle, does, late)
    told = act(action, runs).json()
    assert told["changed"] == 2
    assert set(Run.objects.filter(pk__in=ids).values_list("state", flat=True)) == {
        "stopped" if action == "stop" else "paused"
    }


def test_runs_of_another_workspace_are_not_touched(runs, team):
    outsider = ApiClient(team.outsider)
    ids = [run.pk for run in runs]
    refused = outsider.post("/runs/table/actions", {"action": "tag", "word": "mine", "runs": ids})
    assert refused.status_code == 422
    assert (
        outsider.client.put(
            f"/api/v1/runs/{ids[0]}/star", {"starred": True}, content_type="application/json"
        ).status_code
        == 404
    )
    change = services.tag(team.researcher, ids, "ours")
    assert outsider.post(f"/runs/table/changes/{change.pk}/undo").status_code == 404
    assert all(tags(run) == ["ours"] for run in runs)


@pytest.mark.parametrize("role", ["reviewer", "annotator"])
def test_who_may_only_read_changes_nothing_but_a_reviewer_stars(runs, team, role):
    their = ApiClient(getattr(team, role))
    assert their.post("/runs/table/actions", {"action": "archive", "runs": [runs[0].pk]}).status_code == 403
    assert their.patch(f"/runs/{runs[0].pk}/labels", {"notes": "x"}).status_code == 403
    assert their.post("/runs/table/views", {"name": "x"}).status_code == 403
    starred = their.client.put(f"/api/v1/runs/{runs[0].pk}/star", {"starred": True}, content_type="application/json")
    assert starred.status_code == (200 if role == "reviewer" else 403)
    assert RunStar.objects.count() == (role == "reviewer")
    assert browser(getattr(team, role)).post(f"/runs/{runs[0].pk}/labels", {"notes": "x"}).status_code == 403


def test_a_star_is_for_oneself(runs, team, api):
    ApiClient(team.owner).client.put(
        f"/api/v1/runs/{runs[0].pk}/star", {"starred": True}, content_type="application/json"
    )
    shown = {item["run"]["name"]: item["starred"] for item in api.get("/runs/table").json()["items"]}
    assert not any(shown.values())


def test_labels_by_the_api_change_what_is_named(api, runs):
    path = f"/runs/{runs[0].pk}/labels"
    api.patch(path, {"tags": ["B", "a", "b"], "notes": "*fine*"})
    assert api.patch(path, {"group": "one"}).json() == {
        "tags": ["a", "b"],
        "notes": "*fine*",
        "group": "one",
        "starred": False,
    }
    assert api.get(path).json()["notes"] == "*fine*"
    assert api.patch(path, {"tags": [" "]}).json()["error"]["fields"][0]["path"] == "tags"
    assert api.patch(path, {"notes": "x" * 20_001}).json()["error"]["fields"][0]["path"] == "notes"


def test_notes_on_the_run_page_are_markdown_and_harmless(as_researcher, runs):
    as_researcher.post(
        f"/runs/{runs[0].pk}/labels", {"tags": "x, y", "group": "g", "notes": "**bold** <script>alert(1)</script>"}
    )
    shown = as_researcher.get(f"/runs/{runs[0].pk}").content.decode()
    assert "<strong>bold</strong>" in shown and "<script>alert(1)" not in shown
    assert tags(runs[0]) == ["x", "y"]


def test_the_form_changes_only_what_the_person_has_changed(as_researcher, runs, team):
    """A colleague has written notes, set a tag and removed one, and chosen a group since the page was drawn."""
    run = runs[0]
    services.set_tags(team.owner, run, ["one", "two"])
    seen = {"seen-tags": "one,two", "seen-group": "", "seen-notes": ""}
    services.set_tags(team.owner, run, ["two", "theirs"])
    services.write_notes(team.owner, run, "Theirs.")
    services.group(team.owner, [run.pk], "night")
    as_researcher.post(f"/runs/{run.pk}/labels", seen | {"tags": "one, two, mine", "group": "", "notes": ""})
    run.refresh_from_db()
    assert tags(run) == ["mine", "theirs", "two"] and (run.notes, run.group) == ("Theirs.", "night")
    as_researcher.post(f"/runs/{run.pk}/labels", {"tags": "", "seen-tags": "mine,theirs,two"})
    run.refresh_from_db()
    assert tags(run) == [] and (run.notes, run.group) == ("Theirs.", "night")


def test_notes_that_two_people_have_changed_are_kept_for_both(as_researcher, runs, team):
    run = runs[0]
    services.write_notes(team.owner, run, "Before.")
    mine = {"seen-notes": "Before.", "notes": "Mine & long.\r\nTwo lines."}
    services.write_notes(team.owner, run, "Theirs.")
    page = as_researcher.post(f"/runs/{run.pk}/labels", mine, follow=True).content.decode()
    run.refresh_from_db()
    assert run.notes == "Theirs." and "Theirs.</p>" in page and "so yours are not saved" in page
    assert (
        re.search(r"<textarea[^>]*>Mine &amp; long\.\s+Two lines\.</textarea>", page)
        and '<details class="fold" open' in page
    )
    assert "Not saved yet" not in as_researcher.get(f"/runs/{run.pk}").content.decode()
    as_researcher.post(f"/runs/{run.pk}/labels", {"seen-notes": "Theirs.", "notes": "Both."})
    run.refresh_from_db()
    assert run.notes == "Both."


def test_notes_that_are_too_long_come_back_in_the_form(as_researcher, runs):
    page = as_researcher.post(f"/runs/{runs[0].pk}/labels", {"notes": "x" * 20_001}, follow=True).content.decode()
    assert f">{'x' * 20_001}</textarea>" in page and "Not saved yet" in page


@pytest.mark.django_db(transaction=True)
def test_of_two_people_who_change_the_notes_at_once_one_is_told(runs, team):
    got = concurrently(
        partial(services.write_notes, who, runs[0], text, "")
        for who, text in ((team.owner, "a"), (team.researcher, "b"))
    )
    runs[0].refresh_from_db()
    assert sorted(type(each).__name__ for each in got) == ["Conflict", "Run"] and runs[0].notes in ("a", "b")


def test_actions_leave_a_run_that_its_program_has_deleted(api, runs, team):
    """Its page is gone for everybody, so nobody can have meant it."""
    ids = [run.pk for run in runs]
    gone = runs[0]
    LoggedRun.objects.create(run=gone, key=f"{gone.pk:032}", door="mlflow", deleted_at=timezone.now())
    change = services.tag(team.researcher, ids, "kept")
    assert change.runs == sorted(ids[1:]) and tags(gone) == []
    Run.objects.filter(pk__in=ids).update(state="running")
    assert services.stop(team.researcher, ids) == len(ids) - 1
    gone.refresh_from_db()
    assert gone.state == "running"
    assert queries.ids_of(team.researcher, ids) == sorted(ids[1:], reverse=True)


def test_an_end_of_a_line_counts_once_in_notes(as_researcher, runs):
    """Browsers send it as two characters, so notes of full length were refused although their field took them."""
    notes = "x" * 19_998 + "\r\n" + "y"
    as_researcher.post(f"/runs/{runs[0].pk}/labels", {"tags": "", "group": "", "notes": notes})
    runs[0].refresh_from_db()
    assert runs[0].notes == notes.replace("\r\n", "\n")


@pytest.mark.django_db(transaction=True)
def test_two_people_who_archive_the_same_runs_archive_each_once(runs, team):
    ids = [run.pk for run in runs]
    people = (team.researcher, team.owner)
    changes = concurrently(partial(services.archive, person, ids) for person in people)
    assert sorted(pk for change in changes for pk in change.runs) == sorted(ids)


@pytest.mark.django_db(transaction=True)
def test_of_two_who_undo_at_once_one_is_told(runs, team):
    change = services.archive(team.researcher, [run.pk for run in runs])
    people = (team.researcher, team.owner)
    told = concurrently(partial(services.undo, person, RunChange.objects.get(pk=change.pk)) for person in people)
    assert sum(isinstance(each, Conflict) for each in told) == 1
    assert not Run.objects.filter(archived_at__isnull=False).exists()


# ---- saved views and the page ----


def test_a_saved_view_opens_first_for_whoever_chose_it(api, team, runs, as_researcher, as_owner):
    view = api.post(
        "/runs/table/views", {"name": "Good", "query": "alpha", "sort": "name", "columns": ["state"]}
    ).json()
    api.client.put(f"/api/v1/runs/table/views/{view['id']}/default")
    mine, other = (page.get("/experiments").content.decode() for page in (as_researcher, as_owner))
    assert ">beta<" not in mine and ">beta<" in other
    assert ">beta<" in as_researcher.get("/experiments?view=0").content.decode()
    assert [item["is_default"] for item in api.get("/runs/table/views").json()["items"]] == [True]
    again = api.post("/runs/table/views", {"name": "Good", "query": "beta"}).json()
    assert (again["id"], again["query"]) == (view["id"], "beta")
    api.delete("/runs/table/default")
    assert "gamma" in as_researcher.get("/experiments").content.decode()
    assert api.delete(f"/runs/table/views/{view['id']}").status_code == 204
    assert ApiClient(team.outsider).delete(f"/runs/table/views/{view['id']}").status_code == 404


def test_the_page_shows_what_is_wrong_with_a_query_at_its_place(as_researcher, runs):
    shown = as_researcher.get("/experiments", {"q": "alpha state:done"}).content.decode()
    assert "<mark>done</mark>" in shown and "There is no state done" in shown


def test_a_column_that_no_run_has_is_said(as_researcher, runs):
    shown = as_researcher.get("/experiments", {"columns": "state,nowhere/at_all"}).content.decode()
    assert "No run here has nowhere/at_all." in shown


def test_addresses_of_before_lead_to_the_same_runs(as_researcher, runs):
    number = runs[0].experiment_id
    shown = as_researcher.get(f"/experiments?experiment={number}&state=finished")
    assert shown.context["layout"].query == f'state:finished experiment:"{runs[0].experiment.name}"'
    assert len(shown.context["rows"]) == 3
    assert not as_researcher.get("/experiments?experiment=abc").context["rows"]


def test_csv_has_every_run_and_no_formula(as_researcher, as_outsider, make, team):
    run = make("=HYPERLINK(1)", scores=[0.5])
    make("\uff1dHYPERLINK(1)")  # spreadsheets read the wide sign as the narrow one
    services.set_tags(team.researcher, run, ["a", "b"])
    answer = as_researcher.get("/experiments.csv", {"columns": "eval/score,state", "sort": "name"})
    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert lines[0] == "run,experiment,name,tags,eval/score,state"
    assert f'{run.pk},{run.experiment.name},\'=HYPERLINK(1),"a, b",0.5,finished' in lines and len(lines) == 3
    assert any(",'\uff1dHYPERLINK(1)," in line for line in lines)
    some = as_researcher.post("/experiments.csv", {"ids": str(run.pk), "columns": "state"})
    assert len(b"".join(some.streaming_content).decode().splitlines()) == 2
    foreign = as_outsider.post("/experiments.csv", {"ids": str(run.pk), "columns": "state"})
    assert len(b"".join(foreign.streaming_content).decode().splitlines()) == 1


def test_completion_names_what_runs_here_have(api, make, team):
    services.set_tags(team.researcher, make("alpha", lr=1e-5, scores=[0.5]), ["ablation"])

    def offered(text: str) -> list[str]:
        items = api.get("/runs/table/complete", q=text, at=len(text)).json()["items"]
        return [text[: item["start"]] + item["text"] for item in items]

    assert offered("sta")[0] == "state:"
    assert "state:finished" in offered("state:fin")
    assert "tag:x,ablation" in offered("tag:x,abl")
    assert "a -config.optim.lr" in offered("a -config.optim.l")
    assert offered("eval/sc") == ["eval/score"]
    assert "max(eval/score)" in offered("max(eval")
    assert ApiClient(team.outsider).get("/runs/table/complete", q="eval/sc", at=7).json()["items"] == []


def test_strangers_and_annotators_do_not_see_the_table(runs, as_annotator):
    assert as_annotator.get("/experiments").status_code == 403
    assert as_annotator.get("/experiments.csv").status_code == 403
    assert Client().get("/experiments/count").status_code == 302
