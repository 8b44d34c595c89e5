"""Chains: a step behind a run is launched once after the run has finished, with the run's outputs, or the chain says why it is not."""

from typing import Any

import pytest

from tests.concurrency import concurrently
from tests.webapp.webhooks.hooks import announced_events, listen
from trainer.config import ConfigInvalid
from webapp.accounts.administration.closing import close
from webapp.accounts.models import Membership
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.core.requests.idempotency import KeyReused
from webapp.evaluation.models import Evaluation
from webapp.experiments.after import queries, rounds, services
from webapp.experiments.after.services import StepAsked
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launching
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.lifecycle import states
from webapp.experiments.models import ChainStep, Run

from ..conftest import swap_names
from ..outputs.test_outputs import output


@pytest.fixture
def add(run, team, version):
    """Puts a step behind the run, as the researcher; keywords replace the defaults."""

    def _add(behind=None, key=None, membership=None, after=None, **given) -> ChainStep:
        plain: dict[str, Any] = {
            "kind": "run",
            "config": {"steps": 6},
            "dataset": checks.DatasetChoice(id=version.dataset_id),
        }
        return services.add(membership or team.researcher, after or run, StepAsked(**(plain | given)), behind, key)

    return _add


@pytest.fixture
def finish(trainer, run, settings):
    """Ends the run, with the model that it has trained."""
    folder = settings.VAR / "runs" / str(run.id) / "outputs/policy"
    folder.mkdir(parents=True)

    def _finish(leaves=True) -> Run:
        if leaves:
            assert trainer.post(output(trainer)).status_code == 200
        assert trainer.post(trainer.event("state", 4, state="finished")).status_code == 200
        run.refresh_from_db()
        assert run.state == "finished"
        return run

    return _finish


def fresh(step: ChainStep) -> ChainStep:
    return ChainStep.objects.get(pk=step.pk)


def test_it_waits_says_for_what_and_begins_with_the_model_of_the_run_before(run, add, finish, team):
    step = add(name="second")
    rounds.watch()
    assert (fresh(step).state, queries.waiting_reason(fresh(step))) == ("waiting", "Waits until run 1 has finished")
    finish()
    assert queries.waiting_reason(fresh(step)) == "run 1 has finished: it is about to be launched"
    rounds.take_up(run.id)
    launched = fresh(step).run
    assert fresh(step).state == "launched" and launched is not None
    assert (launched.name, launched.state, launched.steps_total) == ("second", "queued", 6)
    assert (launched.model.name, launched.created_by) == ("Policy from rubrics-run-1", team.researcher.user)


def test_without_the_output_it_begins_with_the_model_that_was_chosen(run, add, finish, model):
    step = add(with_output=False)
    finish(leaves=False)
    rounds.take_up(run.id)
    assert fresh(step).run.model == model


def test_messages_that_come_again_and_upkeep_launch_nothing_twice(run, add, finish):
    step = add()
    finish()
    for _ in range(3):
        rounds.take_up(run.id)
        rounds.watch()
    assert Run.objects.count() == 2 and fresh(step).state == "launched"


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_launch_one(run, add, finish):
    add()
    finish()
    assert concurrently([lambda: rounds.take_up(run.id)] * 4) == [None] * 4
    assert Run.objects.count() == 2


def test_a_worker_that_is_killed_leaves_a_step_that_waits_and_upkeep_launches_it(run, add, finish, monkeypatch):
    step = add()
    finish()
    with monkeypatch.context() as dying:
        dying.setattr(launching, "launch", lambda *_, **__: (_ for _ in ()).throw(SystemExit()))
        with pytest.raises(SystemExit):
            rounds.take_up(run.id)
    assert fresh(step).state == "waiting"
    rounds.watch()
    assert fresh(step).state == "launched"


def test_a_step_that_cannot_be_launched_for_now_keeps_no_other_waiting(run, add, finish, monkeypatch):
    first, second = add(name="first"), add(name="second")
    finish()
    launch = launching.launch

    def refusing(membership, **given):
        if given["name"] == "first":
            raise OSError("the disk is full")
        return launch(membership, **given)

    with monkeypatch.context() as full:
        full.setattr(launching, "launch", refusing)
        rounds.take_up(run.id)
    assert (fresh(first).state, fresh(second).state) == ("waiting", "launched")
    rounds.watch()
    assert fresh(first).state == "launched"


def test_the_end_of_a_run_asks_for_what_waits_for_it_and_only_then(run, add, finish, monkeypatch):
    sent = []
    monkeypatch.setattr(rounds, "enqueue", lambda *args: sent.append(args))
    add()
    finish()
    assert sent == [("workers.after.take_up", run.id)]


def test_behind_a_run_that_failed_it_waits_until_that_is_resumed(run, add, finish, team):
    step = add()
    states.move(run, "failed", reason="gone")
    rounds.watch()
    told = queries.waiting_reason(fresh(step))
    assert (
        told
        == "run 1 failed. It is launched once run 1 is resumed and finishes. Cancel it if run 1 will not be resumed"
    )
    assert fresh(step).state == "waiting"
    lifecycle.resume(team.researcher, run)
    Run.objects.filter(pk=run.pk).update(state="finished")
    rounds.watch()
    assert fresh(step).state == "refused", "it left no model"
    assert fresh(step).reason == "run 1 has left no model that a run can begin with"


@pytest.mark.parametrize("account_is_closed", [False, True])
def test_what_cannot_be_launched_any_more_says_why_and_ends_what_stands_behind(
    run, add, finish, team, account_is_closed
):
    step = add(name="second")
    last = add(behind=step, name="third")
    finish()
    listen(team.owner)
    if account_is_closed:
        close(team.researcher.user, by="the directory")
    else:
        Membership.objects.filter(pk=team.researcher.pk).update(role="reviewer")
    rounds.take_up(run.id)
    assert fresh(step).state == "refused"
    assert fresh(step).reason == "The person who asked for it is no longer allowed to launch anything here"
    assert (fresh(last).state, fresh(last).reason) == ("cancelled", "“second” before it was refused")
    entry = AuditEntry.objects.get(action="run.then_refused")
    assert (entry.object_id, entry.actor, entry.detail["reason"]) == (run.id, None, fresh(step).reason)
    facts = {"run": run.pk, "chain_step": step.pk, "kind": "run", "then": "second", "reason": fresh(step).reason}
    [told_facts] = [given for event, given in announced_events() if event == "run.then_refused"]
    assert facts.items() <= told_facts.items()
    assert Run.objects.count() == 1


def test_a_chain_of_three_goes_on_by_itself(run, add, finish, team, version):
    second = add(name="second")
    third = add(behind=second, kind="evaluation", config={}, name="how good")
    assert queries.waiting_reason(third) == "Waits until “second” before it was launched and has finished"
    finish()
    rounds.take_up(run.id)
    launched = fresh(second).run
    assert (fresh(third).after, fresh(third).behind) == (launched, None)
    assert [node.step.name for node in queries.chain(launched) if node.step] == ["second", "how good"]
    Run.objects.filter(pk=launched.pk).update(state="finished")
    rounds.watch()
    assert fresh(third).state == "refused" and "sampled nothing in an evaluation yet" in fresh(third).reason


def test_an_evaluation_is_of_the_responses_of_the_run_before(run, add, finish, team, version):
    from tests.e2e.seed import seed_run

    step = add(kind="evaluation", config={"max_prompts": 3})
    seed_run(run, steps=4)
    Run.objects.filter(pk=run.pk).update(state="finished")
    rounds.take_up(run.id)
    made = Evaluation.objects.get()
    assert fresh(step).evaluation == made
    assert (made.config["responses"][0]["run"], made.config["max_prompts"]) == (run.id, 3)
    assert (made.dataset_version, made.created_by) == (version, team.researcher.user)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"config": {"steps": 0}}, "steps"),
        ({"dataset": checks.DatasetChoice(name="none")}, "dataset"),
        ({"kind": "evaluation", "config": {"responses": []}}, "responses"),
        ({"kind": "evaluation", "config": {}, "recipe": "judge_audit"}, "recipe"),
        ({"kind": "evaluation", "config": {"judge": 99}}, "judge"),
    ],
)
def test_it_is_checked_when_it_is_put_there(add, given, field):
    with pytest.raises(ConfigInvalid) as refused:
        add(**given)
    assert field in [problem.path for problem in refused.value.problems]
    assert not ChainStep.objects.exists()


def test_behind_what_leaves_no_policy_stands_nothing_that_begins_with_it(run, add):
    Run.objects.filter(pk=run.pk).update(recipe="reward_model")
    run.refresh_from_db()
    with pytest.raises(ConfigInvalid, match="leaves no model"):
        add()
    assert add(with_output=False).state == "waiting"


def test_the_same_key_puts_one_there_and_another_request_with_it_is_refused(add):
    assert add(key="k") == add(key="k")
    with pytest.raises(KeyReused):
        add(key="k", name="other")


@pytest.mark.django_db(transaction=True)
def test_a_double_click_puts_one_there(add):
    found = concurrently([lambda: add(key="k")] * 4)
    assert len({step.pk for step in found}) == 1


def test_cancelling_takes_those_behind_along_and_twice_is_harmless(run, add, team):
    step = add(name="second")
    last = add(behind=step)
    for _ in range(2):
        assert services.cancel(team.researcher, run, step).state == "cancelled"
    assert (fresh(last).state, fresh(last).reason) == ("cancelled", "“second” before it was cancelled")
    assert AuditEntry.objects.filter(action="run.then_cancelled").count() == 1
    with pytest.raises(Conflict):
        add(behind=fresh(step))


def test_nothing_waits_for_a_step_that_was_deleted_while_one_chose_it(add, monkeypatch):
    step = add(name="second")
    monkeypatch.setattr(services, "_checked", lambda *_: step.delete() and {})
    with pytest.raises(Conflict, match="deleted meanwhile"):
        add(behind=ChainStep.objects.get(pk=step.pk))


def test_as_many_steps_as_may_wait_for_a_run_count_only_while_they_wait(run, add, team, monkeypatch):
    monkeypatch.setattr(services, "MOST", 2)
    first, _ = add(), add()
    with pytest.raises(Conflict, match="At most 2 steps wait"):
        add()
    services.cancel(team.researcher, run, first)
    assert add().state == "waiting"


@pytest.mark.django_db(transaction=True)
def test_cancelled_and_launched_at_once_it_is_one_of_both(run, add, finish, team):
    step = add()
    finish()

    def cancel():
        try:
            services.cancel(team.researcher, run, step)
        except Conflict:
            return "launched"
        return "cancelled"

    (said, _) = concurrently([cancel, lambda: rounds.take_up(run.id)])
    assert fresh(step).state == said
    assert Run.objects.count() == (2 if said == "launched" else 1)


def test_what_was_launched_cannot_be_cancelled_and_what_stands_behind_it_waits_for_its_run(run, add, finish, team):
    step = add()
    finish()
    rounds.take_up(run.id)
    with pytest.raises(Conflict):
        services.cancel(team.researcher, run, step)
    assert add(behind=step).after == fresh(step).run
    lifecycle.stop(team.researcher, fresh(step).run)
    lifecycle.delete(team.researcher, fresh(step).run)
    assert queries.waiting_reason(fresh(step)) == "Its run or evaluation was deleted"
    with pytest.raises(Conflict):
        add(behind=fresh(step))


def test_the_tab_draws_the_chain_from_either_end(run, add, finish, as_researcher, as_outsider):
    step = add(name="second")
    add(behind=step, kind="evaluation", config={}, name="how good")
    shown = as_researcher.get(f"/runs/{run.id}/chain").content.decode()
    assert "second" in shown and "how good" in shown and "Then train" in shown
    assert as_outsider.get(f"/runs/{run.id}/chain").status_code == 404
    finish()
    rounds.take_up(run.id)
    other = as_researcher.get(f"/runs/{fresh(step).run_id}/chain").content.decode()
    assert f'href="/runs/{run.id}/chain"' in other and "how good" in other


def test_by_the_pages(run, as_researcher, as_annotator, as_outsider):
    page = as_researcher.get(f"/runs/{run.id}/chain/recipe?recipe=policy&behind=0", follow=True)
    assert "Begin with the model that “run 1” trains" in page.content.decode()
    form = page.context["form"]
    given = {"recipe": "policy", "dataset": form.dataset, "key": form.key, "name": "second", "with_output": "on"}
    given |= {"mode": "json", "json": '{"steps": 3}', "action": "launch"}
    url = f"/runs/{run.id}/chain/0/policy"
    assert as_annotator.post(url, given).status_code == 403
    assert as_outsider.post(url, given).status_code == 404
    wrong = as_researcher.post(url, given | {"json": '{"steps": 0}'})
    assert wrong.status_code == 422 and not ChainStep.objects.exists()
    for _ in range(2):
        assert as_researcher.post(url, given)["Location"] == f"/runs/{run.id}/chain"
    (step,) = ChainStep.objects.all()
    assert (step.name, step.asked["config"]["steps"], step.asked["with_output"]) == ("second", 3, True)
    as_researcher.post(f"/runs/{run.id}/chain/evaluate", {"behind": step.pk, "key": "e", "name": "how good"})
    assert ChainStep.objects.get(behind=step).kind == "evaluation"
    cancel = f"/runs/{run.id}/chain/{step.pk}/cancel"
    asked = as_researcher.post(cancel).content.decode()
    assert "Cancel “second”?" in asked and "“how good” behind it is cancelled too" in asked
    assert set(ChainStep.objects.values_list("state", flat=True)) == {"waiting"}, (
        "one press does not lose what was typed"
    )
    as_researcher.post(cancel, {"sure": "1"})
    assert set(ChainStep.objects.values_list("state", flat=True)) == {"cancelled"}
    assert as_researcher.post(cancel)["Location"] == f"/runs/{run.id}/chain", "a second press asks nothing"


def test_over_the_api(run, as_researcher, as_outsider, version):
    url = f"/api/v1/runs/{run.id}/chain"
    body = {"kind": "run", "dataset": version.dataset_id, "config": {"steps": 3}}
    first = as_researcher.post(url, body, content_type="application/json")
    assert first.status_code == 201 and first.json()["reason"] == "Waits until run 1 has finished"
    behind = {"kind": "evaluation", "behind": first.json()["id"]}  # an evaluation on the same data
    assert as_researcher.post(url, behind, content_type="application/json").status_code == 201
    found = as_researcher.get(url).json()
    assert found["first"] == run.id
    assert [(item["kind"], item["after"], item["behind"]) for item in found["items"]] == [
        ("run", run.id, None),
        ("evaluation", None, first.json()["id"]),
    ]
    wrong = as_researcher.post(url, body | {"config": {"steps": 0}}, content_type="application/json")
    assert wrong.status_code == 422 and "'path': 'steps'" in str(wrong.json())
    assert as_outsider.get(url).status_code == 404
    Run.objects.filter(pk=run.pk).update(recipe="logged")
    assert as_researcher.post(url, behind, content_type="application/json").status_code == 409
    Run.objects.filter(pk=run.pk).update(recipe="policy")
    assert as_researcher.delete(f"{url}/{first.json()['id']}").json()["state"] == "cancelled"


def test_it_begins_with_the_model_that_was_chosen_though_another_has_its_name(run, add, finish, model):
    step = add(with_output=False)
    swap_names(model)
    finish(leaves=False)
    rounds.take_up(run.id)
    assert fresh(step).run.model == model
