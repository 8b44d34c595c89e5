"""Workers that ask a judge. The run keeps its answers, so nothing is asked twice, also if a process is killed."""

import json
from itertools import count
from pathlib import Path

import pytest

from tests.trainer.chat_beside import chat_server
from tests.trainer.killed_runs import run_until_killed
from tests.trainer.loops.conftest import events_of
from tests.trainer.loops.policy.test_judged_runs import access
from tests.trainer.running import run
from trainer.contracts import Criterion, Example, Rubric
from trainer.rewards import Item
from trainer.rewards.access import Access
from trainer.rewards.journal import Journal
from trainer.rollouts import RewardSetup
from trainer.runners.feed import AttemptKey
from trainer.runners.work import RewardWorker, ScoredGroup, ScoreJob, Waits
from trainer.scheduling import SampleId

from .conftest import async_config
from .fake import FakeFleet

JUDGED = {"kind": "rubric", "judge": "Grader v1"}
RUBRIC = Rubric(criteria=(Criterion(id="kind", text="Is kind.", points=2),))


@pytest.fixture
def data(examples: list[Example], tmp_path: Path) -> Path:
    path = tmp_path / "judged.jsonl"
    rows = [row.model_copy(update={"rubric": RUBRIC}) for row in examples]
    path.write_text("".join(row.canonical() + "\n" for row in rows))
    return path


def notes(out: Path, steps: tuple[int, ...]) -> dict[tuple[int, int, int], str]:
    """The judge's verdicts about each response that was trained on."""
    rows = [(e.step, row) for e in events_of(out) if e.data.kind == "rollouts" for row in e.data.rollouts]
    return {
        (step, row.group, row.index): row.criteria[0].verdict.note
        for step, row in rows
        if row.phase == "train" and step in steps
    }


def with_workers_inside() -> None:
    from trainer.runners import ray_fleet

    ray_fleet.RayFleet = FakeFleet  # type: ignore[assignment,misc]


@pytest.mark.parametrize("update", [1, 4])
def test_an_asynchronous_run_that_is_killed_goes_on_with_the_same_rewards_and_asks_nothing_twice(
    update: int, data: Path, tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge answers at random, so only stored answers can repeat the run."""
    draws = count()
    config = async_config({"ahead": 3, "max_staleness": 2}, rewards=[JUDGED], checkpoint={"every": 2, "keep": 9})
    out = tmp_path / "run"
    monkeypatch.setattr("trainer.runners.ray_fleet.RayFleet", FakeFleet)
    with chat_server() as server:
        server.answer = lambda body: json.dumps({"explanation": f"draw {next(draws)}", "met": next(draws) % 3 == 0})

        where = "trainer.loops.recipes.policy:PolicyStage._update"
        run_until_killed(
            where, config, data, tiny_dir, out, call=update, prepare=with_workers_inside, access=access(server)
        )
        journal = Journal(out / "rewards.jsonl")
        drawn = {entry.place: entry.part.verdicts[0].note for entry in journal._known.values()}
        journal.close()
        asked = server.requests
        assert run(config, data, tiny_dir, out, resume=True, access=access(server))
        again = server.requests - asked
    told = notes(out, (1, 2, 3, 4, 5))
    repeated = {place: note for place, note in drawn.items() if place.startswith("train/")}
    assert repeated and set(repeated.values()) <= set(told.values()), "every answer of before the kill is used"
    numbers = {int(note.split()[1]) // 2 for note in told.values()}
    assert len([number for number in numbers if number >= asked]) <= again
    assert len(told) == len(set(told.values())) == 40, "each response has an answer of its own"


def test_a_group_that_waits_for_one_judge_does_not_ask_the_other_again(tmp_path: Path, examples: list[Example]) -> None:
    example = examples[0].model_copy(update={"rubric": RUBRIC})
    item = Item("train/1/0/0", example, RUBRIC, "How kind", 2, 8)
    parts = [JUDGED, {"kind": "rubric", "name": "second", "judge": "Other v1"}]
    config = async_config(rewards=parts)
    with chat_server() as here, chat_server() as away:
        away.fault = "down"
        known = Access(dict(access(here).judges) | {"Other v1": access(away).judges["Grader v1"]})
        job = ScoreJob(1, (AttemptKey(SampleId(0, 0), 1),), (item,))
        workers = [RewardWorker(RewardSetup(config, known)) for _ in range(2)]
        waits = workers[0].score(job)
        assert isinstance(waits, Waits) and [entry.name for entry in waits.told] == ["rubric"]
        away.fault = None
        scored = workers[1].score(
            ScoreJob(1, job.keys, job.items, waits.told)
        )  # another worker, which knows nothing else
        for worker in workers:
            worker.close()
    assert isinstance(scored, ScoredGroup) and [entry.name for entry in scored.told] == ["second"]
    assert scored.rewards[0].total is not None and here.requests == 1
