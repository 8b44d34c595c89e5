"""Rounds of stored responses: which weights sample, which responses each step trains on, and that a kill changes nothing."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.contracts import jsonlines
from trainer.loops.policy.collecting import responses_of
from trainer.loops.policy.offline import OfflineCollector
from trainer.loops.policy.stored_rounds import StoredRounds
from trainer.loops.session.errors import RunFailed, StopRequested

from ..conftest import events_of, metrics_of, small_config

OFFLINE: dict[str, Any] = {
    "steps": 6,
    "scaffold": None,
    "runner": {"kind": "offline", "push_every": 3, "solved_above": None},
    "evaluation": {"every": 2},
    "objective": {"name": "oapl", "beta2": 0.1},
}


def offline(make_loop: Callable[..., Any], *place: Path, **changes: Any) -> Any:
    config = small_config(**(OFFLINE | changes))
    return make_loop(config, *place, collector=lambda job: OfflineCollector)


class Killed(BaseException):
    pass


def counting(loop: Any) -> list[tuple[str, int, int]]:
    """The calls of the sampler as (for training or evaluation, version, responses)."""
    asked: list[tuple[str, int, int]] = []
    sample = loop.stage.parts.sampler.sample

    def note(requests: Any, progress: Any = None, finished: Any = None) -> Any:
        results = sample(requests, progress, finished)
        purpose = "evaluation" if requests[0].temperature == 0 else "training"
        asked.append((purpose, results[0].version, len(requests)))
        return results

    loop.stage.parts.sampler.sample = note
    return asked


def trained_on(run_dir: Path) -> dict[int, list[tuple[str, int]]]:
    """(prompt, place in its group) of every response that a step has trained on."""
    found: dict[int, list[tuple[str, int]]] = {}
    for event in events_of(run_dir):
        for row in event.data.rollouts if event.data.kind == "rollouts" else ():
            if row.phase == "train" and row.ratios:
                found.setdefault(event.step, []).append((f"{row.example_key}/{row.group}", row.index))
    return found


def test_a_round_is_sampled_by_the_weights_it_begins_with_and_trained_on_once(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    loop = offline(make_loop)
    asked = counting(loop)
    loop.run()
    training = [(version, count) for purpose, version, count in asked if purpose == "training"]
    assert training == [(0, 8)] * 3 + [(3, 8)] * 3
    assert [version for purpose, version, _ in asked if purpose == "evaluation"] == [0, 2, 4, 6]
    found = trained_on(tmp_path / "run")
    for steps in ((1, 2, 3), (4, 5, 6)):
        seen = Counter(place for step in steps for place in found[step])
        assert len(seen) == 24 and set(seen.values()) == {1}  # each of 6 prompts x 4 responses, once
    metrics = metrics_of(tmp_path / "run")
    assert [metrics[step, "offline/round"] for step in range(1, 7)] == [1, 1, 1, 2, 2, 2]
    assert {step for step, key in metrics if key == "offline/reward"} == {1, 4}
    # The first update of a round starts from the weights that sampled, so the ratio is 1; later updates have other ratios.
    assert metrics[1, "policy/ratio_raw"] == pytest.approx(1.0, abs=0.05)
    assert abs(metrics[3, "policy/log_ratio"]) > abs(metrics[1, "policy/log_ratio"])


def test_the_page_reads_which_round_it_is(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    loop = offline(make_loop, steps=3)
    loop.run()
    phases = [event.data.phase for event in events_of(tmp_path / "run") if event.data.kind == "progress"]
    assert {"round 1 of 1: sampling", "round 1 of 1: updating"} <= set(phases)
    lines = [event.data.message for event in events_of(tmp_path / "run") if event.data.kind == "log"]
    assert any("round 1 of 1: 24 responses to 6 prompts" in line for line in lines)


def test_several_passes_visit_every_response_as_often_and_in_other_orders(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    runner = OFFLINE["runner"] | {"push_every": 4, "round_epochs": 2}
    loop = offline(make_loop, steps=4, runner=runner)
    asked = counting(loop)
    loop.run()
    assert sum(count for purpose, _, count in asked if purpose == "training") == 4 * 4
    found = trained_on(tmp_path / "run")
    seen = Counter(place for step in found.values() for place in step)
    assert len(seen) == 16 and set(seen.values()) == {2}
    assert sorted(found[1] + found[2]) == sorted(found[3] + found[4])


def test_a_later_round_can_make_more_passes_over_fewer_prompts(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    runner = OFFLINE["runner"] | {"push_every": 2, "later_round_epochs": 2}
    loop = offline(make_loop, steps=6, runner=runner)
    asked = counting(loop)
    loop.run()
    assert [(version, count) for purpose, version, count in asked if purpose == "training"] == [
        *((0, 8), (0, 8)),
        (2, 8),
        (4, 8),
    ]
    found = trained_on(tmp_path / "run")
    assert set(Counter(found[1] + found[2]).values()) == {1} and len(found[1] + found[2]) == 16
    for steps in ((3, 4), (5, 6)):
        seen = Counter(place for step in steps for place in found[step])
        assert len(seen) == 8 and set(seen.values()) == {2}


def rewarded(monkeypatch: pytest.MonkeyPatch, worth: Callable[[int], float | None]) -> None:
    """Rewards by the number of the group in its round."""
    from dataclasses import replace

    from trainer.loops.policy import offline as module

    plain = responses_of

    def made(*arguments: Any) -> Any:
        found = plain(*arguments)
        return found._replace(
            trajectories=[
                replace(t, reward=replace(t.reward, total=worth(t.plan.group), excluded="")) for t in found.trajectories
            ]
        )

    monkeypatch.setattr(module, "responses_of", made)


def test_prompts_without_a_correct_response_are_left_out_counted_and_shown(
    make_loop: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewarded(monkeypatch, lambda group: {0: 1.0, 1: 0.0, 2: None, 3: 0.5}.get(group, 0.0))
    loop = offline(make_loop, steps=3, runner=OFFLINE["runner"] | {"solved_above": 0.0})
    loop.run()
    metrics = metrics_of(tmp_path / "run")
    assert metrics[1, "offline/prompts"] == 2 and metrics[1, "offline/left_out"] == 4
    assert metrics[1, "offline/reward"] == pytest.approx((1.0 + 0.0 + 0.5 + 0.0 + 0.0) / 5)
    groups = {place.split("/")[1] for step in trained_on(tmp_path / "run").values() for place, _ in step}
    assert groups == {"0", "3"}
    shown = [row for e in events_of(tmp_path / "run") if e.data.kind == "rollouts" for row in e.data.rollouts]
    assert {row.group for row in shown if row.phase == "train" and not row.ratios} == {1, 2, 4, 5}


def test_a_round_with_nothing_correct_ends_the_run_and_says_what_to_do(
    make_loop: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rewarded(monkeypatch, lambda group: -1.0)
    loop = offline(make_loop, runner=OFFLINE["runner"] | {"solved_above": 0.0})
    with pytest.raises(RunFailed, match=r"reward above 0; the best is worth -1\. Lower runner\.solved_above"):
        loop.run()


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """The metrics of a run that nothing stopped. The first test that needs them makes the run."""
    return {}


PLACES = ["sampling lot 2", "sampling lot 5", "scoring", "after step 2", "after step 3", "updating"]


def killed_at(place: str, loop: Any) -> None:
    """Raises Killed at this place, like SIGKILL: nothing is saved any more."""
    stage, count = loop.stage, {"sampling": 0, "updates": 0}
    sample, begin = stage.parts.sampler.sample, stage.scorer.begin
    advance, update = loop.advance, stage.updater.run

    def sampling(requests: Any, progress: Any = None, finished: Any = None) -> Any:
        count["sampling"] += requests[0].temperature > 0
        if place == f"sampling lot {count['sampling']}":
            raise Killed
        return sample(requests, progress, finished)

    def scoring(items: Any) -> Any:
        if place == "scoring" and items[0].place.startswith("round/2/"):
            raise Killed
        return begin(items)

    def advancing() -> None:
        if place == f"after step {loop.step}" and loop.step:
            raise Killed
        advance()

    def updating(*arguments: Any) -> Any:
        count["updates"] += 1
        if place == "updating" and count["updates"] == 5:
            update(*arguments)
            raise Killed  # the weights have changed and have not been saved
        return update(*arguments)

    stage.parts.sampler.sample, stage.scorer.begin = sampling, scoring
    loop.advance, stage.updater.run = advancing, updating


@pytest.mark.parametrize("place", PLACES)
def test_a_killed_round_goes_on_as_if_nothing_had_been(
    make_loop: Callable[..., Any], tmp_path: Path, place: str, whole: dict[str, Any]
) -> None:
    if not whole:
        offline(make_loop, tmp_path / "whole").run()
        whole |= {"metrics": metrics_of(tmp_path / "whole"), "trained": trained_on(tmp_path / "whole")}
    first = offline(make_loop, tmp_path / "broken")
    killed_at(place, first)
    with pytest.raises(Killed):
        first.run()
    again = offline(make_loop, tmp_path / "broken")
    again.resume()
    again.run()
    assert metrics_of(tmp_path / "broken") == whole["metrics"]
    last = {step: rows[-len(whole["trained"][step]) :] for step, rows in trained_on(tmp_path / "broken").items()}
    assert last == whole["trained"]


def test_what_was_stored_is_not_sampled_again(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    first = offline(make_loop)
    killed_at("sampling lot 3", first)
    with pytest.raises(Killed):
        first.run()
    again = offline(make_loop)
    asked = counting(again)
    again.resume()
    again.run()
    training = [version for purpose, version, _ in asked if purpose == "training"]
    assert training == [0, 3, 3, 3]  # two batches of the first round were stored


@pytest.mark.parametrize("damage", ["gone", "torn", "altered"])
def test_a_damaged_store_is_sampled_again_from_the_damage_on(
    make_loop: Callable[..., Any], tmp_path: Path, damage: str
) -> None:
    offline(make_loop, tmp_path / "whole", steps=3).run()
    first = offline(make_loop, tmp_path / "broken", steps=3)
    killed_at("after step 2", first)
    with pytest.raises(Killed):
        first.run()
    file = tmp_path / "broken" / "rounds" / "round-001.jsonl"
    content = file.read_bytes()
    lines = content.splitlines(keepends=True)
    if damage == "gone":
        file.unlink()
    elif damage == "torn":
        file.write_bytes(content[:-40])
    else:
        file.write_bytes(lines[0] + lines[1].replace(b'"text":"', b'"text":"altered ') + b"".join(lines[2:]))
    again = offline(make_loop, tmp_path / "broken", steps=3)
    asked = counting(again)
    assert again.resume() and again.step == 2
    again.run()
    assert sum(purpose == "training" for purpose, _, _ in asked) == {"torn": 1}.get(damage, 3)
    assert metrics_of(tmp_path / "broken") == metrics_of(tmp_path / "whole")
    assert file.read_bytes() == content


def test_a_stop_in_the_middle_of_sampling_leaves_the_run_before_the_round(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    loop = offline(make_loop)
    sample, lots = loop.stage.parts.sampler.sample, []

    def sampling(requests: Any, progress: Any = None, finished: Any = None) -> Any:
        lots.append(requests[0].temperature > 0)
        if sum(lots) == 5:
            raise StopRequested
        return sample(requests, progress, finished)

    loop.stage.parts.sampler.sample = sampling
    with pytest.raises(StopRequested):
        loop.run()
    assert loop.step == 3
    again = offline(make_loop)
    assert again.resume() and again.step == 3
    again.run()
    offline(make_loop, tmp_path / "whole").run()
    assert metrics_of(tmp_path / "run") == metrics_of(tmp_path / "whole")


def test_a_checkpoint_without_the_weights_that_sample_is_refused(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    """A run that was forked in the middle of a round."""
    make_loop(small_config(steps=2, scaffold=None)).run()
    loop = offline(make_loop)
    state = loop.stage.state()
    with pytest.raises(
        ValueError, match=r"lacks the weights of step 0, .* continue from a checkpoint whose step is a multiple"
    ):
        loop.stage.collector.restore(2, state)


@pytest.mark.parametrize(("kept", "epochs"), [(6, 1), (5, 1), (1, 1), (3, 2), (0, 3)])
def test_what_a_round_kept_is_dealt_out_evenly_and_whole(kept: int, epochs: int) -> None:
    rounds = StoredRounds(seed=7, steps=12, length=6, prompts_per_step=2, epochs=(epochs, epochs), shuffle=True)
    places = [place * 2 for place in range(kept)]
    for steps in (range(1, 7), range(7, 13)):
        dealt = [rounds.dealt(step, places) for step in steps]
        assert Counter(place for step in dealt for place in step) == Counter(dict.fromkeys(places, epochs))
        sizes = [len(step) for step in dealt]
        assert max(sizes) - min(sizes) <= 1 and max(sizes) <= 2


def test_the_store_is_plain_json_with_digests(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    offline(make_loop, steps=3).run()
    lines = jsonlines.lines((tmp_path / "run" / "rounds" / "round-001.jsonl").read_text())
    contents = [json.loads(line.partition(" ")[2]) for line in lines]
    assert contents[0]["round"] == 1 and len(contents) == 4
    spans = [span for lot in contents[1:] for row in lot for span in row["spans"]]
    assert spans and all(author == "policy" and len(ids) == len(logps) for author, ids, logps, _ in spans)
