"""Drafts: kept with their problems, changed, launched once whoever presses, discarded and restored; no place that counts runs takes one for a run."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.http import Http404
from django.utils import timezone

from tests.concurrency import concurrently
from tests.team import ApiClient, browser
from trainer.config import ConfigInvalid
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests.idempotency import KeyReused
from webapp.experiments.launch import checks, discarding, drafts
from webapp.experiments.launch.drafts import RunDraft
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.lifecycle import waiting_line
from webapp.experiments.lifecycle.limits import RunLimits
from webapp.experiments.models import DiscardedDraft, Run, RunSlot, RunValue
from webapp.experiments.runs import history, listing
from webapp.experiments.runs.queries import experiments
from webapp.inference.models import RegisteredModel
from workers import upkeep

from ..conftest import make_version
from .test_forms import form_fields

WRONG = {"steps": 4, "optim": {"lr": "fast"}, "rewards": 7, "no_such": [1, {"a": None}]}


@pytest.fixture
def draft(team, version, model):
    """Saves a draft as the researcher; keywords replace the defaults."""

    def save(key=None, **changes) -> Run:
        given: dict[str, Any] = {
            "recipe": "policy",
            "config": {"steps": 4},
            "dataset": checks.DatasetChoice(version.dataset_id),
        }
        return drafts.save(team.researcher, RunDraft(**(given | changes)), key)

    return save


@pytest.fixture
def as_reviewer(team):
    return browser(team.reviewer)


def actions(run: Run) -> list[str]:
    return list(
        AuditEntry.objects.filter(object_type="run", object_id=run.pk).order_by("id").values_list("action", flat=True)
    )


def test_a_draft_waits_for_nobody_and_is_counted_nowhere(draft, team, version):
    open_version = make_version(team.owner, name="open", state="draft", digest="")
    run = draft(
        dataset=checks.DatasetChoice(open_version.dataset_id), name="later", limits=RunLimits(seconds=7200), retries=0
    )
    assert (run.state, run.steps_total, run.config["steps"], run.dataset_version, run.model) == (
        "draft",
        4,
        4,
        None,
        None,
    )
    assert (run.token_digest, run.family, RunSlot.objects.count(), run.next_try_at) == ("", "", 0, None)
    open_version.refresh_from_db()
    assert (run.draft["id"], open_version.state) == (open_version.dataset_id, "draft"), "a draft freezes nothing"
    assert actions(run) == ["run.draft"]
    assert not waiting_line.launched([Run.State.QUEUED]).exists()
    assert listing.overview(team.workspace.pk, 5) == ([], [])
    assert experiments(team.workspace.pk).get().run_count == 0  # type: ignore[attr-defined]
    assert RunValue.objects.filter(run=run, column__path="steps").get().number == 4
    for act in (lifecycle.stop, lifecycle.pause, lifecycle.resume):
        with pytest.raises(Conflict):
            act(team.researcher, run)
    for part in ("data", "base"):
        with pytest.raises(Conflict, match="Launch it first"):
            getattr(run, part)


def test_its_problems_are_listed_and_it_is_kept_as_it_was_written(draft, team):
    run = draft(config=WRONG, dataset=checks.DatasetChoice(name="none such"))
    assert (run.config, run.steps_total) == (WRONG, 0)
    found = {each.path: each.message for each in drafts.problems(team.researcher, run)}
    assert {"optim.lr", "rewards", "no_such", "dataset"} <= set(found)
    with pytest.raises(ConfigInvalid):
        drafts.launch(team.researcher, run)
    run.refresh_from_db()
    assert (run.state, run.config, run.next_try_at) == ("draft", WRONG, None)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"recipe": "none"}, "recipe"),
        ({"name": "n" * 121}, "name"),
        ({"experiment": "e" * 121}, "experiment"),
        ({"retries": 99}, "retries"),
        ({"not_before": timezone.now() - timedelta(days=1)}, "not_before"),
        ({"limits": RunLimits(seconds=1)}, "limits.seconds"),
        ({"config": {"steps": float("nan")}}, "config"),
        ({"config": {"name": "\ud800"}}, "config"),
        ({"config": {"name": "n" * drafts.MOST_CONFIG}}, "config"),
    ],
)
def test_what_no_row_can_keep_is_refused_with_its_place(draft, change, field):
    with pytest.raises(Invalid) as refused:
        draft(**change)
    assert field in refused.value.fields
    assert not Run.objects.exists()


def test_a_config_that_is_too_deep_is_refused(draft):
    deep: dict = {}
    for _ in range(200):
        deep = {"a": deep}
    with pytest.raises(Invalid):
        draft(config=deep)


def test_a_change_replaces_it_and_a_launch_gives_the_run_of_a_launch(draft, team, version, model, launch):
    like = launch(config={"steps": 6}, name="now", limits=RunLimits(tokens=5000))
    run = draft(config=WRONG)
    wanted = RunDraft(
        "policy", {"steps": 6}, checks.DatasetChoice(name="demo"), name="now", limits=RunLimits(tokens=5000)
    )
    drafts.change(team.researcher, run, wanted)
    drafts.change(team.researcher, run, wanted)
    assert actions(run) == ["run.draft", "run.draft_changed"], "the same again changes nothing"
    assert not RunValue.objects.filter(run=run, column__path="no_such.0").exists()
    assert not drafts.problems(team.researcher, run)
    launched = drafts.launch(team.owner, run)
    same = (
        "state",
        "config",
        "dataset_version",
        "model",
        "steps_total",
        "family",
        "attempt",
        "token_limit",
        "draft",
        "step",
    )
    assert {name: getattr(launched, name) for name in same} == {name: getattr(like, name) for name in same}
    assert launched.token_digest and launched.next_try_at and launched.attempt_at > launched.created_at
    slots = RunSlot.objects.values_list("role", "path", "model")
    assert list(slots.filter(run=launched)) == list(slots.filter(run=like))
    assert actions(run)[2:] == ["run.queued"]
    asked = AuditEntry.objects.get(action="run.launch", object_id=like.pk).detail
    written = AuditEntry.objects.get(action="run.queued", object_id=run.pk).detail
    assert asked["limits"] == written["limits"] == {"tokens": 5000}
    newest = history.events(launched)[0][0]
    why = "Launched from a draft, limited to 5,000 generated tokens"
    assert (newest.state, newest.why, newest.who) == ("queued", why, str(team.owner.user))
    with pytest.raises(Conflict, match="already"):
        drafts.change(team.researcher, run, wanted)
    assert drafts.launch(team.researcher, run).state == "queued" and len(actions(run)) == 3


def test_a_start_that_has_passed_is_a_problem(draft, team):
    run = draft(not_before=timezone.now() + timedelta(hours=1))
    Run.objects.update(not_before=timezone.now() - timedelta(hours=1))
    run.refresh_from_db()
    assert [each.path for each in drafts.problems(team.researcher, run)] == ["not_before"]
    with pytest.raises(Invalid):
        drafts.launch(team.researcher, run)


def test_a_draft_from_a_checkpoint_holds_nothing(draft, team, run):
    kept = draft(forked_from=run, start_step=2)
    assert [each.message for each in drafts.problems(team.researcher, kept)] == [
        f"{run} keeps no checkpoint of step 2; it keeps none."
    ]
    Run.objects.filter(pk=run.pk).update(state="stopped")
    lifecycle.delete(team.researcher, run)
    kept.refresh_from_db()
    with pytest.raises(Conflict, match="was deleted"):
        drafts.launch(team.researcher, kept)


@pytest.mark.django_db(transaction=True)
def test_of_many_launches_at_once_one_moves_it(draft, team):
    run = draft()
    found = concurrently([lambda: drafts.launch(team.researcher, Run.objects.with_names().get(pk=run.pk)).state] * 4)
    assert found == ["queued"] * 4
    assert actions(run) == ["run.draft", "run.queued"]
    assert RunSlot.objects.filter(run=run).count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_launch_and_a_discard_at_once_do_one_of_them(draft, team):
    run = draft()
    mine = Run.objects.with_names().get
    concurrently(
        [
            lambda: drafts.launch(team.researcher, mine(pk=run.pk)),
            lambda: lifecycle.delete(team.researcher, mine(pk=run.pk)),
        ]
    )
    left = Run.objects.filter(pk=run.pk).first()
    assert left is None or left.state == "queued"
    assert actions(run)[1:] == (["run.queued"] if left else ["run.delete"])


@pytest.mark.django_db(transaction=True)
def test_a_double_click_keeps_one_draft(draft):
    assert len(set(concurrently([lambda: draft(key="click").pk] * 4))) == 1
    with pytest.raises(KeyReused):
        draft(key="click", config={"steps": 5})


def test_over_the_api(as_researcher, version, model, as_reviewer):
    def call(method, url, body=None, client=as_researcher, status=200):
        answer = getattr(client, method)(f"/api/v1/runs{url}", body, content_type="application/json")
        assert answer.status_code == status, answer.content
        return answer.json() if answer.content else {}

    body = {"recipe": "policy", "dataset": version.dataset_id, "draft": True, "config": {"optim": {"lr": "fast"}}}
    made = call("post", "", body, status=201)
    assert (made["state"], made["dataset"], made["model"]) == ("draft", None, None)
    at = f"/{made['id']}"
    shown = call("get", f"{at}/draft", client=as_reviewer)
    assert shown["dataset"] == {"id": version.dataset_id, "version": 1}
    assert [each["path"] for each in shown["problems"]] == ["optim.lr"]
    fields = call("post", f"{at}/launch", status=422)["error"]["fields"]
    assert [each["path"] for each in fields] == ["optim.lr"]
    for method, url in (("put", f"{at}/draft"), ("post", f"{at}/launch"), ("delete", at)):
        call(method, url, {"dataset": "demo"}, client=as_reviewer, status=403)
    changed = call("put", f"{at}/draft", {"dataset": "demo", "config": {"steps": 6}, "name": "better"})
    assert changed["problems"] == [] and changed["run"]["config"]["steps"] == 6
    assert call("post", f"{at}/stop", status=409)["error"]["code"] == "draft"
    assert call("post", f"{at}/fork", {}, status=409)["error"]["code"] == "draft"
    assert call("get", "?state=draft")["items"][0]["id"] == made["id"]
    assert call("get", "?state=active")["items"] == []
    assert call("post", f"{at}/launch")["state"] == "queued"
    assert call("post", f"{at}/launch")["state"] == "queued", "twice is harmless"
    assert call("get", f"{at}/draft", status=409)["error"]["code"] == "not_a_draft"
    other = call("post", "", body, status=201)["id"]
    call("delete", f"/{other}", status=204)
    assert not Run.objects.filter(pk=other).exists()


def fields_of(form: RunForm, **changes) -> dict[str, str]:
    own = {"recipe": form.recipe, "key": form.key, "dataset": form.dataset, "name": form.name, "retries": form.retries}
    return own | {"experiment": form.experiment} | form_fields(form.group, **changes)


def test_from_the_form_to_the_line(as_researcher, as_reviewer, team, version, model):
    form = RunForm.blank(team.researcher)
    wrong = fields_of(form, optim__lr="fast") | {"action": "draft", "name": "kept"}
    answer = as_researcher.post("/runs/new", wrong | {"hours": "soon"})
    assert answer.status_code == 422 and not Run.objects.exists(), "a row cannot keep hours that are none"
    answer = as_researcher.post("/runs/new", wrong)
    run = Run.objects.with_names().get()
    assert answer.url == f"/runs/{run.pk}" and run.is_draft and run.config["optim"]["lr"] == "fast"
    page = as_researcher.get(f"/runs/{run.pk}").content.decode()
    assert "1 problem to fix" in page and "optim.lr" in page and f"/runs/{run.pk}/edit" in page
    assert "/edit" not in as_reviewer.get(f"/runs/{run.pk}").content.decode()
    assert as_researcher.get(f"/runs/{run.pk}/rollouts").url == f"/runs/{run.pk}"
    assert "Nothing was launched" in as_researcher.post(f"/runs/{run.pk}/launch", follow=True).content.decode()
    assert as_reviewer.post(f"/runs/{run.pk}/launch").status_code == 403
    edit = as_researcher.get(f"/runs/{run.pk}/edit")
    form = edit.context["form"]
    assert form.name == "kept" and 'value="fast"' in edit.content.decode()
    fixed = fields_of(form, optim__lr="0.001")
    as_researcher.post(f"/runs/{run.pk}/edit", fixed | {"action": "draft", "name": "fixed"})
    run.refresh_from_db()
    assert (run.name, run.config["optim"]["lr"], run.state) == ("fixed", 0.001, "draft")
    answer = as_researcher.post(f"/runs/{run.pk}/edit", fixed | {"action": "launch", "steps": "7"})
    run.refresh_from_db()
    assert answer.url == f"/runs/{run.pk}" and (run.state, run.config["steps"], run.name) == ("queued", 7, "kept")
    for late in (
        as_researcher.post(f"/runs/{run.pk}/edit", fixed | {"action": "draft"}),
        as_researcher.get(f"/runs/{run.pk}/edit"),
        as_researcher.post(f"/runs/{run.pk}/launch"),
    ):
        assert late.url == f"/runs/{run.pk}"
    run.refresh_from_db()
    assert run.config["steps"] == 7


def test_the_pages_that_list_runs_show_a_draft(as_researcher, draft, run, django_assert_max_num_queries):
    kept = draft(name="kept", config=WRONG)
    for url in (
        "/experiments?q=state:draft",
        "/experiments",
        "/",
        "/search.json?q=kept",
        f"/runs/compare?ids={run.pk},{kept.pk}",
        f"/lineage/run/{kept.pk}",
    ):
        assert as_researcher.get(url).status_code == 200, url
    table = as_researcher.get("/experiments?q=state:draft").content.decode()
    assert "kept" in table and 'data-state="draft"' in table
    cells = [" ".join(each.split()) for each in re.findall(r'<(?:span|small) class="[^"]*run-cell">([^<]*)<', table)]
    assert cells == ["–", "–"], "neither its model nor its dataset is chosen before the launch"
    for form in ("fork", "sweep"):
        assert as_researcher.get(f"/runs/{kept.pk}/{form}").url == f"/runs/{kept.pk}"
    assert as_researcher.get(f"/runs/{kept.pk}/chain/0/policy").status_code == 404
    with django_assert_max_num_queries(20):
        as_researcher.get(f"/runs/{kept.pk}")


def test_a_discarded_draft_comes_back_as_it_was(as_researcher, as_reviewer, draft, team):
    run = draft(name="kept", config=WRONG, limits=RunLimits(seconds=7200))
    labels = {"tags": "tonight", "group": "ablation", "notes": "Why not."}
    assert as_researcher.post(f"/runs/{run.pk}/labels", labels).url == f"/runs/{run.pk}"
    before = Run.objects.filter(pk=run.pk).values().get()
    answer = as_researcher.post(f"/runs/{run.pk}/discard", follow=True)
    assert (
        answer.redirect_chain[-1][0] == "/experiments" and f'action="/runs/{run.pk}/restore"' in answer.content.decode()
    )
    assert not Run.objects.exists()
    gone = as_researcher.get(f"/runs/{run.pk}")
    assert gone.status_code == 404 and "This draft was discarded" in gone.content.decode()
    assert "Restore" not in as_reviewer.get(f"/runs/{run.pk}").content.decode()
    assert as_reviewer.post(f"/runs/{run.pk}/restore").status_code == 403
    assert "discarded" not in browser(team.outsider).get(f"/runs/{run.pk}").content.decode()
    assert browser(team.outsider).post(f"/runs/{run.pk}/restore").status_code == 404
    for _ in range(2):
        assert as_researcher.post(f"/runs/{run.pk}/restore").url == f"/runs/{run.pk}"
    assert Run.objects.filter(pk=run.pk).values().get() == before
    assert actions(run) == ["run.draft", "run.tags", "run.group", "run.notes", "run.delete", "run.draft_restored"]
    page = as_researcher.get(f"/runs/{run.pk}").content.decode()
    assert all(words in page for words in ("tonight", "ablation", "Why not.", "Discarded", "Draft restored"))
    assert RunValue.objects.filter(run=run, column__path="steps").get().number == 4


def test_a_restored_draft_names_nothing_that_was_deleted_meanwhile(draft, team):
    model = RegisteredModel.objects.create(workspace=team.workspace, name="short-lived", source="local", path="/m")
    run = draft()
    Run.objects.filter(pk=run.pk).update(model=model)
    discarding.discard(team.researcher, run)
    model.delete()
    discarding.restore(team.researcher, run.pk)
    assert Run.objects.get(pk=run.pk).model is None


def test_a_restored_draft_takes_another_number_if_its_own_is_taken(draft, team):
    run = draft()
    discarding.discard(team.researcher, run)
    assert draft().number == run.number == 1
    discarding.restore(team.researcher, run.pk)
    assert Run.objects.get(pk=run.pk).number == 2
    with pytest.raises(Http404):
        discarding.restore(team.researcher, run.pk + 100)


def test_a_restored_draft_that_was_launched_and_deleted_does_not_come_back(
    draft, team, as_researcher, django_capture_on_commit_callbacks
):
    run = draft()
    discarding.discard(team.researcher, run)
    with django_capture_on_commit_callbacks(execute=True):
        discarding.restore(team.researcher, run.pk)
    discarding.restore(team.researcher, run.pk)  # a second press
    Run.objects.filter(pk=run.pk).delete()
    with pytest.raises(Http404):
        discarding.restore(team.researcher, run.pk)
    assert "Restore" not in as_researcher.get(f"/runs/{run.pk}").content.decode()


def test_a_draft_is_deleted_and_restored_over_the_api(draft, team):
    run, api = draft(), ApiClient(team.researcher)
    before = Run.objects.filter(pk=run.pk).values().get()
    restore = f"/runs/{run.pk}/restore"
    assert api.client.delete(f"/api/v1/runs/{run.pk}").status_code == 204 and not Run.objects.exists()
    assert ApiClient(team.reviewer).post(restore).status_code == 403
    assert ApiClient(team.outsider).post(restore).status_code == 404
    assert [api.post(restore).json()["id"] for _ in range(2)] == [run.pk] * 2
    assert Run.objects.filter(pk=run.pk).values().get() == before
    assert actions(run) == ["run.draft", "run.delete", "run.draft_restored"]


def test_a_discarded_draft_outlives_the_cache_and_is_erased_after_a_day(draft, team):
    kept, late = draft(), draft()
    for run in (kept, late):
        discarding.discard(team.researcher, run)
    cache.clear()
    DiscardedDraft.objects.filter(run=late.pk).update(discarded_at=timezone.now() - discarding.KEPT)
    assert discarding.restorable_name(team.researcher, late.pk) is None
    with pytest.raises(Http404):
        discarding.restore(team.researcher, late.pk)
    upkeep.erase_deleted_runs()
    assert list(DiscardedDraft.objects.values_list("run", flat=True)) == [kept.pk]
    discarding.restore(team.researcher, kept.pk)
    assert Run.objects.get().pk == kept.pk and not DiscardedDraft.objects.exists()


def test_a_launched_run_is_not_discarded(draft, team):
    run = draft()
    drafts.launch(team.researcher, run)
    with pytest.raises(Conflict, match="launched or discarded"):
        discarding.discard(team.researcher, run)
    assert Run.objects.get().state == "queued"
