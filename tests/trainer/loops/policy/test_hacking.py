"""The watch for reward hacking in a run: which runs it watches, what it is told, and that the checkpoint holds its state."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chatserver import ChatServer
from trainer import checkpoints
from trainer.checkpoints import Folder
from trainer.config.recipes.judge import JudgeConfig
from trainer.contracts import AlarmData, CriterionResult, Example, Message, PartResult, Verdict
from trainer.hacking import Alarm, SignalWatch
from trainer.loops.policy.hacking import HackingWatch
from trainer.loops.prompts.data import Prompt
from trainer.rollouts import PromptPlan, Reward, Span, Trajectory

from ...chat_beside import chat_server
from ...running import run
from ..conftest import events_of, small_config
from .test_judged_runs import BRIEF, JUDGED, access, data  # noqa: F401 - a fixture

FLATTERY = "What a brilliant question! "
PANEL = {"kind": "verifier", "name": "checked", "shadow": True}


class Told:
    """The part of `Tell` that is used."""

    def __init__(self) -> None:
        self.alarms: list[AlarmData] = []

    def alarm(self, alarm: AlarmData) -> None:
        self.alarms.append(alarm)


def step(flattering: bool) -> list[Trajectory]:
    """Four groups of four. The first half of each flatters and earns more. The last response has no reward."""
    made = []
    for group in range(4):
        for place in range(4):
            plan = PromptPlan("row", group, place, "", (1,), (1,), 0)
            total = None if place == 3 else 1.0 - place / 4
            verdict = Verdict(criterion_id="c", met=True, source="judge")
            parts = (PartResult(name="rubric", kind="rubric", value=total),)
            reward = Reward(
                total, criteria=(CriterionResult(text="Is kind.", points=1, kind="x", verdict=verdict),), parts=parts
            )
            text = f"{FLATTERY if flattering and place < 2 else ''}Red {group} {place}"
            spans = (Span("prompt", (1,)), Span("policy", (2, 3), (-1.0, -1.0), 0))
            made.append(Trajectory(plan, spans, text, "stop", reward))
    return made


def looked(watch: HackingWatch, flattering: list[bool]) -> list[AlarmData]:
    example = Example(key="row", prompt=(Message(role="user", content="A colour?"),))
    tasks, told = {"row": Prompt(example, None, (1,))}, Told()
    for number, each in enumerate(flattering, 1):
        watch.look(number, step(each), tasks, told)  # type: ignore[arg-type]
    return told.alarms


def test_a_judged_reward_is_watched_and_the_alarm_names_the_responses() -> None:
    [told] = looked(HackingWatch(small_config(steps=20, rewards=[JUDGED, PANEL])), [False] * 6 + [True] * 4)
    assert (told.signal, told.since, told.before) == ("flattery", 7, 0.0)
    assert {place.index for place in told.places} <= {0, 1} and told.places[0].index == 0 and len(told.places) == 5
    assert (told.part, told.criterion) == ("rubric", "")


def test_a_reward_that_programs_decide_is_not_watched() -> None:
    watch = HackingWatch(small_config(steps=20, rewards=[{"kind": "verifier"}]))
    assert looked(watch, [False] * 6 + [True] * 4) == [] and watch.state_dict() == {}


def test_the_panel_is_what_says_whether_a_response_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    shadows = [PANEL, {"kind": "overlong", "soft_tokens": 4, "shadow": True}]
    found: list[Any] = []
    monkeypatch.setattr(
        "trainer.loops.policy.hacking.SignalWatch", lambda steps, panel, trained: found.append((steps, panel, trained))
    )
    HackingWatch(small_config(steps=20, rewards=[JUDGED, *shadows]))
    assert found == [(20, ["checked"], ["rubric"])]


def with_flaws(share: Callable[[int, int], float], number: int) -> list[Trajectory]:
    """Groups of judgements in which the share of flawed reasons is `share(number, place)`."""
    made = []
    for each in step(flattering=False):
        total = each.reward.total
        flaws = PartResult(name="flaws", kind="flaws", value=share(number, each.plan.index))
        outcome = PartResult(name="outcome", kind="outcome", value=total)
        made.append(replace(each, reward=Reward(total, parts=(outcome, flaws))))
    return made


@pytest.mark.parametrize(
    ("later", "alarms"),
    [(lambda place: place / 4, []), (lambda place: 1.0, ["panel"])],
    ids=["as before", "all flawed"],
)
def test_reasons_that_grow_flawed_while_the_reward_stays_raise_the_alarm_and_sound_ones_do_not(
    later: Callable[[int], float], alarms: list[str]
) -> None:
    config = JudgeConfig.model_validate(
        {"steps": 40, "reward": {"flaws_judge": "Flaws v1", "matcher": "judge", "matching_judge": "Matcher v1"}}
    )
    watch, told = HackingWatch(config), Told()
    tasks = {"row": Prompt(Example(key="row", prompt=(Message(role="user", content="A colour?"),)), None, (1,))}
    for number in range(1, 31):
        # at first, judgements with higher rewards have fewer flawed reasons
        rows = with_flaws(lambda number, place: place / 4 if number <= 6 else later(place), number)
        watch.look(number, rows, tasks, told)  # type: ignore[arg-type]
    assert [(each.signal, each.subject) for each in told.alarms] == [(name, "flaws") for name in alarms]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as found:
        yield found


def test_a_run_tells_its_alarms_and_keeps_the_watch_with_the_checkpoint(
    server: ChatServer,
    data: Path,  # noqa: F811 - the fixture
    tiny_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, steps = SignalWatch.look, []

    def look(watch: SignalWatch, number: int, scored: Any) -> list[Alarm]:
        steps.append(number)
        assert scored and scored[0].criteria[0][0] == "Is kind." and "rubric" in scored[0].parts
        return [*real(watch, number, scored), *([Alarm("length", "", 2, 2, 0.5, 0.1, 3.0, ((0, 1),))] * (number == 2))]

    monkeypatch.setattr(SignalWatch, "look", look)
    out = tmp_path / "run"
    for total in (2, 3):
        config = small_config(**BRIEF | {"steps": total}, rewards=[JUDGED])
        assert run(config, data, tiny_dir, out, access=access(server), resume=total == 3)
    assert steps == [1, 2, 3]
    alarms = [(event.step, event.data.signal) for event in events_of(out) if event.data.kind == "alarm"]
    assert alarms == [(2, "length")]
    found = checkpoints.load_newest(Folder(out / "checkpoints"), ("policy", "optimizer"))
    assert found and found.state["hacking"]["left"] == 2, "three of the five steps of the baseline are learnt"
