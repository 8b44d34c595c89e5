"""A simulated person with a stopwatch and a notebook tries to tell gold tasks from others. The person may use everything that an
annotator's browser receives: numbers, their changes from one task to the next, the order of ids, the time of a reply. The time is what the
server's statements take, so the statements are compared and not the time, which would show the load of the machine.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from zlib import crc32

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.team import ApiClient, browser, make_team
from tests.webapp.annotation.seed import ANSWER, make_project, pair
from webapp.annotation.models import Assignment, Task
from webapp.annotation.projects import task_services
from webapp.annotation.tasks import gold_schedule
from webapp.annotation.work import queue, serving

pytestmark = pytest.mark.django_db
TASKS, GOLD, EVERY = 48, 12, 4
SURE = 0.95  # the share of right guesses, averaged over both kinds, from which a person can tell the tasks apart


class Seen(NamedTuple):
    """A task, and all that came with it."""

    gold: bool
    task: int
    told: dict[str, float]


@pytest.fixture
def project(team):
    return with_gold(team)


@pytest.fixture
def short(team):
    """A person who knows where to look finds it in half of the tasks."""
    return with_gold(team, 2)


def with_gold(team, share=1):
    """A project whose first twelve tasks are gold, so their ids would show it. All prompts are equally long; otherwise numbers that have
    one digit would show it.
    """
    examples = [pair(f"q{n:02}") for n in range(TASKS // share)]
    settings = {"gold_every": EVERY, "fast_seconds": 1}
    made = make_project(team.researcher, examples, people=[team.annotator], settings=settings, overlap=1)
    for task in Task.objects.filter(project=made).order_by("rank")[: GOLD // share]:
        task_services.set_gold(team.researcher, task, {"verdict": "compared", "strength": 3})
    return made


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number in a reply, and the lengths of texts and lists."""
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


@pytest.fixture(scope="module")
def as_it_is(module_rows) -> list[Seen]:
    with module_rows(), transaction.atomic():
        team = make_team()
        seen = worked(team, with_gold(team))
        transaction.set_rollback(True)
    return seen


def worked(team, project) -> list[Seen]:
    """All tasks, from the first to the last."""
    script, home = ApiClient(team.annotator), browser(team.annotator)
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
        with CaptureQueriesContext(connection) as asked:
            after = script.post(f"/assignments/{item['id']}/submit", {"content": ANSWER, "hold": 1}).json()
        told |= work(asked)
        reply = after.pop("queue")
        told |= dict(numbers(after, "submitted"))
        task = Assignment.objects.select_related("task").get(pk=item["id"]).task
        seen.append(Seen(task.overlap is None, task.pk, told))
    return seen


def work(asked: CaptureQueriesContext) -> dict[str, float]:
    """The number of the statements, and a number that stands for all their words without values."""
    words = [re.sub(r"'[^']*'|\d+", "?", each["sql"] or "") for each in asked.captured_queries]
    return {"statements": len(words), "statements' words": crc32("\n".join(words).encode())}


def derived(seen: list[dict[str, float]]) -> dict[str, list[float]]:
    """Each number by itself, as a change since the task before and until the next, and relative to the largest so far."""
    found: dict[str, list[float]] = {}
    for name in set.intersection(*(set(each) for each in seen)):
        values = [each[name] for each in seen]
        found[name] = values
        found[f"{name} since"] = [0.0] + [b - a for a, b in zip(values, values[1:], strict=False)]
        found[f"{name} until"] = [b - a for a, b in zip(values, values[1:], strict=False)] + [0.0]
        found[f"{name} most"] = [value - max(values[: place + 1]) for place, value in enumerate(values)]
    return found


def guess(values: list[float], gold: list[bool]) -> float:
    """How often the best simple rule is right, averaged over gold tasks and others. A rule is one value or a threshold."""
    best = 0.0
    for value in set(values):
        for rule in ([each == value for each in values], [each >= value for each in values]):
            right = sum(r for r, g in zip(rule, gold, strict=True) if g) / sum(gold)
            wrong = sum(r for r, g in zip(rule, gold, strict=True) if not g) / (len(gold) - sum(gold))
            best = max(best, (right + 1 - wrong) / 2, (wrong + 1 - right) / 2)
    return best


def telling(seen: list[Seen]) -> dict[str, float]:
    """The numbers that show gold tasks, and how often they are right. The first and last tasks are left out, because they have no task
    before or after them.
    """
    gold = [each.gold for each in seen]
    found = {name: guess(values[1:-1], gold[1:-1]) for name, values in derived([each.told for each in seen]).items()}
    return {name: sure for name, sure in found.items() if sure >= SURE}


def test_nothing_that_the_browser_receives_tells_a_gold_task(as_it_is):
    assert len(as_it_is) == TASKS and sum(each.gold for each in as_it_is) == GOLD
    assert telling(as_it_is) == {}


def test_what_is_done_and_what_is_left_make_one_number(as_it_is):
    seen = [each.told for each in as_it_is]
    # the current task is in neither number
    assert {told["total"] for told in seen if "served.left" in told} == {TASKS - 1}
    assert {told["home total"] for told in seen} == {TASKS - 1}


@pytest.mark.parametrize(("where", "name"), [(serving, "_gold_to_come"), (gold_schedule, "to_come")])
def test_the_attempt_finds_numbers_that_stand_still(team, short, monkeypatch, where, name):
    """An earlier version left the gold tasks out of the number that is left. The attempt above would notice that."""
    monkeypatch.setattr(where, name, lambda *args: 0)
    assert any("left" in each or "total" in each or "free" in each for each in telling(worked(team, short)))


def test_the_attempt_finds_ids_of_tasks(as_it_is):
    assert telling([each._replace(told={"task": each.task}) for each in as_it_is])


def test_no_reply_names_the_task(team, project):
    script = ApiClient(team.annotator)
    [item] = script.post(f"/projects/{project.pk}/claim", {"hold": 1}).json()["items"]
    assert "task" not in item and item["gold"] is False
    script.post(f"/assignments/{item['id']}/submit", {"content": ANSWER, "hold": 0})
    assert "task" not in script.get(f"/projects/{project.pk}/mine").json()["items"][0]


def test_left_ends_at_nothing_for_everybody(team, project):
    """This also holds if gold tasks run out, or if other people take seats."""
    served = 0
    while turn := queue.serve(team.annotator, project.pk, 1):
        if not turn.items:
            assert turn.left == 0 and turn.reason == "none_left"
            break
        served += 1
        queue.submit(team.annotator, turn.items[0], ANSWER)
    assert served == TASKS
