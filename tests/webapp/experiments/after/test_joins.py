"""Joins: a step that waits for several runs is launched once all have finished, says for which it waits, and is drawn once."""

import pytest

from tests.concurrency import concurrently
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.core.requests.idempotency import KeyReused
from webapp.experiments.after import drawing, queries, rounds
from webapp.experiments.after import services as chains
from webapp.experiments.after.queries import ChainNode
from webapp.experiments.launch import checks, drafts
from webapp.experiments.launch.drafts import RunDraft
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.lifecycle import states
from webapp.experiments.models import ChainStep, Run

from .test_chains import add, finish, fresh  # noqa: F401 - fixtures among them


def end(run: Run, state: str = "finished") -> None:
    Run.objects.filter(pk=run.pk).update(state=state)


@pytest.fixture
def other(launch, run) -> Run:
    return launch(name="other")


@pytest.fixture
def joined(add, run, other) -> ChainStep:  # noqa: F811
    return add(with_output=False, also=(other.pk, run.pk, other.pk), name="both")


def test_it_is_launched_once_all_have_finished_whichever_is_the_last(add, run, other, as_researcher):  # noqa: F811
    first = add(with_output=False, also=(other.pk,), name="one")
    assert queries.waiting_reason(fresh(first)) == "Waits until run 1 and “other” have finished"
    end(run)
    rounds.take_up(run.pk)
    rounds.watch()
    assert (fresh(first).state, queries.waiting_reason(fresh(first))) == ("waiting", "Waits until “other” has finished")
    assert "After run 1, other" not in as_researcher.get(f"/runs/{run.pk}/chain").content.decode()
    end(other)
    assert (
        queries.waiting_reason(fresh(first)) == "All runs for which it waits have finished: it is about to be launched"
    )
    rounds.take_up(other.pk)
    assert fresh(first).state == "launched"
    assert "After run 1, other" in as_researcher.get(f"/runs/{run.pk}/chain").content.decode()


def test_upkeep_finds_it_and_the_end_of_each_run_asks_for_it(joined, run, other, monkeypatch):
    sent = []
    monkeypatch.setattr(rounds, "enqueue", lambda *args: sent.append(args))
    for each in (run, other):
        end(each, "running")
        states.move(Run.objects.with_names().get(pk=each.pk), "finished")
    assert sent == [("workers.after.take_up", run.pk), ("workers.after.take_up", other.pk)]
    rounds.watch()
    rounds.watch()
    assert fresh(joined).state == "launched" and Run.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_two_ends_at_once_launch_one(joined, run, other):
    end(run)
    end(other)
    concurrently([lambda: rounds.take_up(run.pk), lambda: rounds.take_up(other.pk)] * 2)
    assert fresh(joined).state == "launched" and Run.objects.count() == 3


def test_one_that_failed_keeps_it_waiting_with_the_reason(joined, run, other, team):
    end(run)
    Run.objects.filter(pk=other.pk).update(state="failed")
    rounds.watch()
    assert fresh(joined).state == "waiting"
    assert queries.waiting_reason(fresh(joined)).startswith(
        "“other” failed. It is launched once “other” is resumed and finishes."
    )
    Run.objects.filter(pk=run.pk).update(state="stopped")
    both = "run 1 was stopped and “other” failed. It is launched once all of them are resumed and finish."
    assert queries.waiting_reason(fresh(joined)).startswith(both), "or a person resumes one of them, and waits in vain"
    Run.objects.filter(pk=run.pk).update(state="finished")
    lifecycle.delete(team.researcher, other)
    assert queries.waiting_reason(fresh(joined)) == queries.DELETED
    rounds.watch()
    rounds.watch()
    assert (fresh(joined).state, fresh(joined).reason) == ("refused", queries.DELETED)
    assert AuditEntry.objects.get(action="run.then_refused").detail["reason"] == queries.DELETED


def test_what_cannot_be_waited_for_is_refused(add, run, team, version):  # noqa: F811
    kept = drafts.save(team.researcher, RunDraft("policy", {}, checks.DatasetChoice(version.dataset_id)))
    for ids in ((kept.pk,), (10**9,), tuple(range(1000, 1021))):
        with pytest.raises(Invalid) as refused:
            add(also=ids)
        assert "also" in refused.value.fields
    assert not ChainStep.objects.exists()


def test_the_key_stands_for_the_runs_too(add, other):  # noqa: F811
    step = add(key="k", also=(other.pk,))
    assert add(key="k", also=(other.pk,)) == step and step.waits.count() == 1
    with pytest.raises(KeyReused):
        add(key="k")


def test_behind_a_step_it_waits_for_both(add, finish, run, other):  # noqa: F811
    second = add(name="second")
    third = add(behind=second, with_output=False, also=(other.pk,), name="third")
    assert queries.waiting_reason(fresh(third)) == (
        "Waits until “second” before it was launched and has finished, and until “other” has finished"
    )
    finish()
    rounds.take_up(run.pk)
    made = fresh(second).run
    assert fresh(third).after == made
    assert queries.waiting_reason(fresh(third)) == "Waits until “second” and “other” have finished"


def test_the_chain_is_the_same_from_every_run_and_has_each_node_once(
    joined,
    add,  # noqa: F811
    run,
    other,
    django_assert_max_num_queries,
):
    add(behind=joined, name="last")
    with django_assert_max_num_queries(12):
        found = queries.chain(run)
    titles = [(node.title, node.level, [each.title for each in node.before]) for node in found]
    assert titles == [("run 1", 0, []), ("other", 0, []), ("both", 1, ["run 1", "other"]), ("last", 2, ["both"])]
    assert [node.title for node in queries.chain(other)] == [node.title for node in found]


def test_the_picture_has_no_box_over_another_and_a_line_for_each_wait():
    roots = [ChainNode() for _ in range(3)]
    join = ChainNode(before=roots, level=1)
    leaves = [ChainNode(before=[join], level=2) for _ in range(2)]
    late = ChainNode(before=[roots[0], leaves[0]], level=3)
    found = drawing.picture([*roots, join, *leaves, late])
    assert len(found.lines) == 3 + 2 + 2
    places = [(box.x, box.y) for box in found.boxes]
    assert len(set(places)) == len(places) and min(y for _, y in places) == drawing.EDGE
    for x, y in places:
        assert not any(a == x and 0 < abs(b - y) < drawing.HEIGHT for a, b in places)
        assert x + drawing.WIDTH < found.width and y + drawing.HEIGHT < found.height
    middle = next(box for box in found.boxes if box.node is join)
    into = [line for line in found.lines if f" {middle.x - 1:g} {middle.y + drawing.HEIGHT / 2:g}M" in line]
    assert len(into) == 3 and all(line.startswith(f"M{drawing.EDGE + drawing.WIDTH} ") for line in into)
    assert middle.y == sorted(y for x, y in places if x == drawing.EDGE)[1], (
        "it stands in the middle of what it waits for"
    )


def test_by_the_pages_and_the_api(run, other, as_researcher, as_annotator, version, model):
    page = as_researcher.get(f"/runs/{run.pk}/chain/0/policy").content.decode()
    assert f'name="also" value="{other.pk}"' in page and f'name="also" value="{run.pk}"' not in page
    as_researcher.post(f"/runs/{run.pk}/chain/evaluate", {"key": "e", "name": "how good", "also": [other.pk]})
    body = {"kind": "run", "also": [other.pk], "name": "both"}
    made = as_researcher.post(f"/api/v1/runs/{run.pk}/chain", body, content_type="application/json")
    assert made.status_code == 201 and made.json()["also"] == [other.pk]
    wrong = as_researcher.post(
        f"/api/v1/runs/{run.pk}/chain", body | {"also": [10**9]}, content_type="application/json"
    )
    assert wrong.status_code == 422 and wrong.json()["error"]["fields"][0]["path"] == "also"
    for each in (run, other):
        shown = as_researcher.get(f"/runs/{each.pk}/chain").content.decode()
        assert shown.count('class="chain-line"') == 4 and "Waits until run 1 and “other” have finished" in shown
        listed = as_researcher.get(f"/api/v1/runs/{each.pk}/chain").json()["items"]
        assert [(item["name"], item["also"]) for item in listed] == [("how good", [other.pk]), ("both", [other.pk])]


@pytest.fixture
def pending(add, other) -> ChainStep:  # noqa: F811
    """A step that waits for the other run."""
    return add(after=other, with_output=False, name="pending")


def test_a_step_waits_for_another_that_is_not_launched_and_then_for_its_run(add, run, other, pending):  # noqa: F811
    step = add(with_output=False, also_steps=(pending.pk,), name="both")
    assert queries.waiting_reason(fresh(step)) == "Waits until run 1 and “pending” have finished"
    end(run)
    rounds.watch()
    assert (
        fresh(step).state == "waiting" and queries.waiting_reason(fresh(step)) == "Waits until “pending” has finished"
    )
    end(other)
    rounds.watch()
    made = fresh(pending).run
    assert [(each.run, each.on) for each in fresh(step).waits.all()] == [(made, None)]
    assert queries.waiting_reason(fresh(step)) == "Waits until “pending” has finished"
    end(made)
    rounds.take_up(made.pk)
    assert fresh(step).state == "launched"


@pytest.mark.parametrize("how", ["cancelled", "refused"])
def test_a_step_that_is_never_launched_ends_what_waits_for_it(add, run, other, pending, team, how):  # noqa: F811
    step = add(with_output=False, also_steps=(pending.pk,), name="both")
    last = add(behind=step, name="last")
    if how == "cancelled":
        chains.cancel(team.researcher, other, pending)
    else:
        ChainStep.objects.filter(pk=pending.pk).update(created_by=None)
        end(other)
        rounds.watch()
    assert fresh(pending).state == how
    assert (fresh(step).state, fresh(step).reason) == ("cancelled", f"“pending” before it was {how}")
    assert (fresh(last).state, fresh(last).reason) == ("cancelled", "“both” before it was cancelled")
    end(run)
    rounds.watch()
    assert fresh(step).run is None


def test_a_step_whose_chain_is_deleted_is_told_as_a_deleted_run(add, run, other, pending, team):  # noqa: F811
    step = add(with_output=False, also_steps=(pending.pk,), name="both")
    end(other, "failed")
    lifecycle.delete(team.researcher, other)
    assert queries.waiting_reason(fresh(step)) == queries.DELETED
    rounds.watch()
    assert (fresh(step).state, fresh(step).reason) == ("refused", queries.DELETED)


@pytest.mark.django_db(transaction=True)
def test_a_step_that_is_launched_while_another_is_put_behind_it_is_not_missed(add, run, other, pending):  # noqa: F811
    end(other)
    concurrently(
        [lambda: rounds.take_up(other.pk), lambda: add(with_output=False, also_steps=(pending.pk,), name="both")]
    )
    step = ChainStep.objects.get(name="both")
    assert [(each.run, each.on) for each in step.waits.all()] == [(fresh(pending).run, None)]


@pytest.mark.django_db(transaction=True)
def test_steps_that_end_at_once_and_have_waiters_in_common_end_each_of_them_once(add, run, other, pending, team):  # noqa: F811
    second = add(after=other, with_output=False, name="second")
    low = add(with_output=False, also_steps=(pending.pk, second.pk), name="low")
    high = add(with_output=False, also_steps=(second.pk, pending.pk), name="high")
    last = add(behind=low, with_output=False, also_steps=(high.pk, second.pk), name="last")
    concurrently([lambda each=each: chains.cancel(team.researcher, other, each) for each in (pending, second)] * 2)
    assert {fresh(each).state for each in (pending, second, low, high, last)} == {"cancelled"}


def test_only_steps_that_become_runs_can_be_waited_for(add, other, pending, team):  # noqa: F811
    evaluation = add(kind="evaluation", config={}, name="how good")
    chains.cancel(team.researcher, other, pending)
    for ids in ((evaluation.pk,), (pending.pk,), (10**9,), tuple(range(1000, 1021))):
        with pytest.raises(Invalid) as refused:
            add(also_steps=ids)
        assert "also_steps" in refused.value.fields


def test_what_waits_for_a_step_is_drawn_and_offered(add, run, other, pending, as_researcher):  # noqa: F811
    page = as_researcher.get(f"/runs/{run.pk}/chain/0/policy").content.decode()
    assert f'name="also" value="step-{pending.pk}"' in page and "Not launched" in page
    body = {"kind": "run", "also_steps": [pending.pk], "name": "both", "with_output": False}
    made = as_researcher.post(f"/api/v1/runs/{run.pk}/chain", body, content_type="application/json")
    assert made.status_code == 201 and (made.json()["also"], made.json()["also_steps"]) == ([], [pending.pk])
    as_researcher.post(f"/runs/{run.pk}/chain/evaluate", {"key": "e", "name": "good", "also": [f"step-{pending.pk}"]})
    assert [each.on for each in ChainStep.objects.get(name="good").waits.all()] == [pending]
    found = [(node.title, [each.title for each in node.before]) for node in queries.chain(run)]
    assert ("both", ["run 1", "pending"]) in found and ("pending", ["other"]) in found
    assert [node.title for node in queries.chain(other)] == [title for title, _ in found]
