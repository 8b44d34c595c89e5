"""Somebody with a stopwatch and a notebook tries to tell gold tasks from others by whatever an annotator's browser receives:
numbers, their changes from one task to the next, the order of ids, the time that a reply takes."""

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import pytest

from tests.cast import ApiClient, browser
from tests.webapp.annotation.seed import ANSWER, make_project, pair
from webapp.annotation.models import Assignment, Task
from webapp.annotation.projects import task_services
from webapp.annotation.work import inbox, queue, serving

pytestmark = pytest.mark.django_db
TASKS, GOLD, EVERY = 48, 12, 4
SURE = 0.95  # of right guesses, on average over both kinds: who guesses so well can tell


@pytest.fixture
def project(cast):
    """The first twelve tasks are gold: by their ids they could be told at once. All prompts are equally long, or the
    numbers with one digit in them would tell."""
    examples = [pair(f"q{n:02}") for n in range(TASKS)]
    settings = {"gold_every": EVERY, "fast_seconds": 1}
    made = make_project(cast.researcher, examples, people=[cast.annotator], settings=settings, overlap=1)
    for task in Task.objects.filter(project=made).order_by("rank")[:GOLD]:
        task_services.set_gold(cast.researcher, task, {"verdict": "compared", "strength": 3})
    return made


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number in a reply, and of texts and lists how long they are."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from numbers(each, f"{path}.{name}")
    elif isinstance(value, list):
        yield f"{path}#", len(value)
        for place, each in enumerate(value[:3]):
            yield from numbers(each, f"{path}.{place}")
    elif isinstance(value, str):
        yield f"{path}#", len(value)
    elif value is None:
        yield f"{path}?", 1
    else:
        yield path, float(value)


def worked(cast, project) -> list[tuple[bool, dict[str, float]]]:
    """For each task from the first to the last: whether it is gold, and all that came with it."""
    script, home = ApiClient(cast.annotator), browser(cast.annotator)
    seen = []
    reply = script.post(f"/projects/{project.pk}/claim", {"hold": 1}).json()
    while reply["items"]:
        [item] = reply["items"]
        told = dict(numbers(reply, "served"))
        listed = script.get("/projects/mine").json()["items"][0]
        told |= dict(numbers(listed, "home")) | {"page": len(home.get("/").content)}
        told |= dict(numbers(script.get(f"/projects/{project.pk}/mine").json(), "mine"))
        told |= dict(numbers(script.get(f"/assignments/{item['id']}").json(), "own"))
        told["total"] = reply["done"] + (reply["left"] or 0)
        told["home total"] = listed["done"] + listed["free"]
        started = perf_counter()
        after = script.post(f"/assignments/{item['id']}/submit", {"content": ANSWER, "hold": 1}).json()
        told["took"] = perf_counter() - started
        reply = after.pop("queue")
        told |= dict(numbers(after, "submitted"))
        seen.append((Assignment.objects.get(pk=item["id"]).task.overlap is None, told))
    return seen


def derived(seen: list[dict[str, float]]) -> dict[str, list[float]]:
    """Each number by itself, as a change since the task before and until the next, and against the largest so far."""
    found: dict[str, list[float]] = {}
    for name in set.intersection(*(set(each) for each in seen)):
        values = [each[name] for each in seen]
        found[name] = values
        found[f"{name} since"] = [0.0] + [b - a for a, b in zip(values, values[1:], strict=False)]
        found[f"{name} until"] = [b - a for a, b in zip(values, values[1:], strict=False)] + [0.0]
        found[f"{name} most"] = [value - max(values[: place + 1]) for place, value in enumerate(values)]
    return found


def guess(values: list[float], gold: list[bool]) -> float:
    """How often the best simple rule is right, on average over gold and others: one value, or a threshold."""
    best = 0.0
    for value in set(values):
        for rule in ([each == value for each in values], [each >= value for each in values]):
            right = sum(r for r, g in zip(rule, gold, strict=True) if g) / sum(gold)
            wrong = sum(r for r, g in zip(rule, gold, strict=True) if not g) / (len(gold) - sum(gold))
            best = max(best, (right + 1 - wrong) / 2, (wrong + 1 - right) / 2)
    return best


def telling(seen: list[tuple[bool, dict[str, float]]]) -> dict[str, float]:
    """What gives gold away, with how often it is right. The first and the last tasks are left out: nothing is before or
    behind them."""
    gold = [each for each, _ in seen]
    found = {name: guess(values[1:-1], gold[1:-1]) for name, values in derived([told for _, told in seen]).items()}
    return {name: sure for name, sure in found.items() if sure >= SURE}


def test_nothing_that_the_browser_receives_tells_a_gold_task(cast, project):
    seen = worked(cast, project)
    assert len(seen) == TASKS and sum(gold for gold, _ in seen) == GOLD
    assert telling(seen) == {}


def test_what_is_done_and_what_is_left_make_one_number(cast, project):
    seen = [told for _, told in worked(cast, project)]
    assert {told["total"] for told in seen if "served.left" in told} == {TASKS - 1}  # the one in hand is in neither
    assert {told["home total"] for told in seen} == {TASKS - 1}


@pytest.mark.parametrize(("where", "name"), [(serving, "_gold_to_come"), (inbox.gold_schedule, "to_come")])
def test_the_attempt_finds_numbers_that_stand_still(cast, project, monkeypatch, where, name):
    """Left without the gold tasks, as it was: the attempt above would notice."""
    monkeypatch.setattr(where, name, lambda *args: 0)
    assert any("left" in each or "total" in each or "free" in each for each in telling(worked(cast, project)))


def test_the_attempt_finds_ids_of_tasks(cast, project):
    seen = worked(cast, project)
    ids = list(
        Assignment.objects.filter(project=project).order_by("claimed_at", "id").values_list("task_id", flat=True)
    )
    assert telling([(gold, {"task": task}) for (gold, _), task in zip(seen, ids, strict=True)])


def test_no_reply_names_the_task(cast, project):
    script = ApiClient(cast.annotator)
    [item] = script.post(f"/projects/{project.pk}/claim", {"hold": 1}).json()["items"]
    assert "task" not in item and item["gold"] is False
    script.post(f"/assignments/{item['id']}/submit", {"content": ANSWER, "hold": 0})
    assert "task" not in script.get(f"/projects/{project.pk}/mine").json()["items"][0]


def test_left_ends_at_nothing_for_everybody(cast, project):
    """Also where gold tasks run out, or others take seats."""
    served = 0
    while turn := queue.serve(cast.annotator, project.pk, 1):
        if not turn.items:
            assert turn.left == 0 and turn.reason == "none_left"
            break
        served += 1
        queue.submit(cast.annotator, turn.items[0], ANSWER)
    assert served == TASKS
