"""The watch for reward hacking of recipe `alternating`: both roles, the panels, and what an alarm names."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.chatserver import ChatServer
from trainer.contracts import AlarmData, Example, Message, PartResult
from trainer.hacking import HeldOut
from trainer.judges.chat import Prices, Target
from trainer.judges.spec import digest
from trainer.judges.spec import resolve as resolve_judge
from trainer.loops.prompts.data import Prompt
from trainer.loops.roles.turn_watch import TurnWatch
from trainer.rewards.access import Access, JudgeAccess
from trainer.rollouts import PromptPlan, Reward, Span, Trajectory

from ...chat_beside import chat_server
from ...running import run
from ..conftest import events_of, metrics_of
from ..recipes.test_alternating import config, data, rollouts, scripted, tiny_dir  # noqa: F401 - fixtures


class Told:
    """The part of `Tell` that is used."""

    def __init__(self) -> None:
        self.alarms: list[AlarmData] = []
        self.values: dict[str, float] = {}

    def alarm(self, alarm: AlarmData) -> None:
        self.alarms.append(alarm)

    def metrics(self, values: dict[str, float]) -> None:
        self.values |= values


PROMPT = (Message(role="user", content="Is it so?"),)
TASKS = {
    f"row-{n}": Prompt(Example(key=f"row-{n}", prompt=PROMPT), None, (1,), facts={"pair": {"example": f"e{n}"}})
    for n in range(32)
}


def step(worth: float, text: str = "It says so.") -> list[Trajectory]:
    """32 pairs with two responses. The first response contains `text` and earns `worth`."""
    made = []
    for group in range(32):
        for place in range(2):
            value = worth if place == 0 else 0.75 * worth
            reward = Reward(value, parts=(PartResult(name="outcome", kind="rubric_verdict", value=value),))
            plan = PromptPlan(f"row-{group}", group, place, "", (1,), (1,), 0)
            spans = (Span("prompt", (1,)), Span("policy", (2, 3), (-1.0, -1.0), 0))
            said = text if place == 0 else f"Plain {group}"
            made.append(Trajectory(plan, spans, said, "stop", reward))
    return made


def played(watch: TurnWatch, worths: list[float], panel: float, told: Told, first: int = 1) -> None:
    """Turns of two steps. The pairs of the panel are worth `panel` after each turn."""
    for turn, worth in enumerate(worths):
        number = first + 2 * turn
        for each in (number, number + 1):
            watch.look(each, step(worth), TASKS, told)  # type: ignore[arg-type]
        held_out = {f"h{n}": [panel] for n in range(60)}
        watch.turn_over(number + 1, number, held_out, told)  # type: ignore[arg-type]


def test_a_role_that_leaves_its_panel_behind_is_told_with_step_part_and_responses() -> None:
    watch, told = TurnWatch(config(steps=20), "judge"), Told()
    played(watch, [0.4, 0.4, 1.0, 1.0], 0.4, told)
    [found] = [each for each in told.alarms if each.signal == "held_out"]
    assert (found.role, found.part, found.since) == ("judge", "outcome", 5)
    assert found.share > 0.4 and len(found.places) == 5 and {place.index for place in found.places} == {0}
    assert told.values == {
        "panel/judge_trained": 0.875,
        "panel/judge_held_out": pytest.approx(0.4),
        "panel/judge_pairs": 60.0,
    }


def test_a_role_whose_panel_follows_is_not() -> None:
    watch, told = TurnWatch(config(steps=20), "judge"), Told()
    for turn, panel in enumerate((0.4, 0.6, 0.8, 0.9)):
        played(watch, [panel + 0.1], panel, told, first=1 + 2 * turn)
    assert told.alarms == []


def test_both_roles_are_watched_for_what_their_texts_show() -> None:
    for role in ("judge", "writer"):
        watch, told = TurnWatch(config(steps=40), role), Told()
        for number in range(1, 12):
            text = "What a brilliant question! It is so." if number > 5 else "It says so."
            watch.look(number, step(1.0, text), TASKS, told)  # type: ignore[arg-type]
        assert ("flattery", role) in {(each.signal, each.role) for each in told.alarms}


def test_a_restart_in_a_turn_loses_nothing() -> None:
    whole, told = TurnWatch(config(steps=20), "judge"), Told()
    played(whole, [0.4, 0.4, 1.0], 0.4, told)
    first, again, more = TurnWatch(config(steps=20), "judge"), TurnWatch(config(steps=20), "judge"), Told()
    played(first, [0.4, 0.4], 0.4, more)
    first.look(5, step(1.0), TASKS, more)  # type: ignore[arg-type]
    again.load_state_dict(json.loads(json.dumps(first.state_dict())))
    again.look(6, step(1.0), TASKS, more)  # type: ignore[arg-type]
    again.turn_over(6, 5, {f"h{n}": [0.4] for n in range(60)}, more)  # type: ignore[arg-type]
    assert more.alarms == told.alarms and more.values == told.values


def test_a_run_tries_each_role_on_held_out_pairs_after_its_turns(
    data: Path,  # noqa: F811 - the fixture
    tiny_dir: Path,  # noqa: F811 - the fixture
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HeldOut, "look", lambda self, gap: 0.0)
    out = tmp_path / "run"
    assert run(config(steps=4, panel={"pairs": 2}), data, tiny_dir, out)
    told = metrics_of(out)
    assert {step for step, key in told if key.startswith("panel/")} <= {2, 4}, "after turns"
    assert told[4, "panel/writer_held_out"] in (0.0, 0.5, 1.0) and told[4, "panel/writer_pairs"] == 2
    right = [row.reward for at, row in rollouts(out) if at in (3, 4) and row.phase == "train"]
    assert 0 < told[4, "panel/writer_trained"] < 1 and set(right) == {0.0, 1.0}
    found = {event.step: event.data for event in events_of(out) if event.data.kind == "alarm"}
    assert found[4].role == "writer" and found[4].part == "choice" and found[4].since == 3
    shown = {(row.group, row.index): row.reward for at, row in rollouts(out) if at == 4 and row.phase == "train"}
    assert found[4].places and shown[found[4].places[0].group, found[4].places[0].index] == 1.0


def test_a_run_without_a_panel_learns_the_same(
    data: Path,  # noqa: F811 - the fixture
    tiny_dir: Path,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    told = []
    for pairs in (0, 3):
        out = tmp_path / str(pairs)
        assert run(config(steps=4, panel={"pairs": pairs}, variances={"pairs": 0}), data, tiny_dir, out)
        told.append({place: value for place, value in metrics_of(out).items() if not place[1].startswith("perf/")})
    assert not any(key.startswith("panel/") for _, key in told[0])
    assert {place: value for place, value in told[1].items() if not place[1].startswith("panel/")} == told[0]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """Always chooses the answer that is shown first."""
    seen = {"explanation": "It says so.", "response_a": "yes", "response_b": "no", "winner": "A"}
    criteria = [{"number": number, **seen} for number in (1, 2)]
    said = json.dumps({"gatekeeper": {"number": 1, **seen}, "criteria": criteria, "verdict": "A"})
    with chat_server(answer=lambda body: said) as found:
        yield found


def test_another_judge_is_asked_about_the_writers_rubrics_and_rewards_nothing(
    server: ChatServer,
    data: Path,  # noqa: F811 - the fixture
    tiny_dir: Path,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    spec = resolve_judge({"kind": "pairwise_rubric", "retries": 0})
    target = Target(server.url, "m", retries=0, prices=Prices(1, 1))  # type: ignore[arg-type]
    access = Access({"Other v1": JudgeAccess(spec, digest(spec, "1"), target)})
    made = config(steps=2, turn_steps=1, panel={"judge": "Other v1", "pairs": 0}, evaluation={"every": 0})
    out = tmp_path / "run"
    assert run(made, data, tiny_dir, out, access=access)
    trained = [row for at, row in rollouts(out) if at == 2 and row.phase == "train"]
    panels = [next(part for part in row.parts if part.name == "panel") for row in trained]
    assert server.bodies and all(part.shadow for part in panels) and any(part.value is not None for part in panels)
    own = [next(part.value for part in row.parts if part.name == "choice") for row in trained]
    assert [row.reward for row in trained] == own


def test_a_panel_judge_of_another_kind_is_refused_at_its_field() -> None:
    made = config(panel={"judge": "Other v1"})
    spec = resolve_judge({"kind": "likert"})
    target = Target("http://localhost", "m")
    found = Access({"Other v1": JudgeAccess(spec, digest(spec, "1"), target)})
    part = made.asking("panel.judge")
    assert part is not None
    [problem] = found.problems([], {"panel.judge": part})
    assert problem.path == "panel.judge" and "likert" in problem.message
