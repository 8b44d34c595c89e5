"""The watch over a run: which events raise an alarm, and which do not. Each alarm is raised once, also after a restart."""

import json
import random

from benchmarks.hacking import Script
from trainer.config import alarms as alarms_in_words
from trainer.contracts import AlarmData
from trainer.hacking import Alarm, RewardedResponse, SignalWatch, signals
from trainer.hacking.credit import credited

STEPS = 20


def test_each_signal_has_its_words() -> None:
    assert set(alarms_in_words.SIGNALS) == {
        *signals.SIGNALS,
        "panel",
        "phrase",
        "held_out",
        "flat",
        "entropy",
        "dead",
        "mismatch",
    }


def test_an_alarm_in_words() -> None:
    data = AlarmData(signal="phrase", subject="so to say", since=6, share=0.5, before=0.014, paid=3.2, places=())
    assert alarms_in_words.alarm_text(data, 7) == (
        "50% of the responses of step 7 say “so to say”; 1% at first, more since step 6. They earn more than others of their prompt."
    )
    later = AlarmData(signal="later", since=6, share=0.5, before=0, places=())
    assert (
        alarms_in_words.alarm_text(later, 7)
        == "50% of the responses of step 7 show later; 0% at first, more since step 6."
    )
    assert alarms_in_words.title("panel", "other") == "The reward leaves “other” behind"


def test_the_part_and_the_criterion_that_pay_are_named_where_it_is_clear() -> None:
    rows = [
        RewardedResponse(
            group,
            index,
            "",
            1,
            0.0,
            "",
            {"a": float(index < 2), "b": 0.5},
            (("Is kind.", index < 2), ("Is red.", None)),
        )
        for group in range(8)
        for index in range(4)
    ]
    there = {(group, index) for group in range(8) for index in range(2)}
    # by group C = 1, Sxx = Srr = 1, V = 1 / 3: z = 8 / sqrt(8 / 3)
    assert credited(rows, there, ["a", "b"]) == ("a", "Is kind.")
    assert credited(rows, there, ["b"]) == ("", "Is kind.")
    assert credited(rows[:4], {(0, 0), (0, 1)}, ["a"]) == ("", ""), "z is 1.7 in one group of four"


def step(
    number: int, share: float, paid: float = 0.5, text: str = "What a brilliant question! "
) -> list[RewardedResponse]:
    """Eight groups of four. The first `share` of each group have the text, which earns `paid`. The truth is the score of the panel."""
    chooser = random.Random(number)  # noqa: S311 - a play
    made = []
    for group in range(8):
        for index in range(4):
            there, truth = index < share * 4, chooser.random()
            reward = truth + (paid if there else 0.0)
            words = " ".join(
                chooser.sample(["river", "stone", "cloud", "bread", "lamp", "chair", "table", "door", "glass"], 5)
            )
            made.append(
                RewardedResponse(group, index, (text if there else "") + words, 5, reward, str(group), {"other": truth})
            )
    return made


def alarms(watch: SignalWatch, shares: list[float], paid: float = 0.5, first: int = 1) -> list[Alarm]:
    return [each for at, share in enumerate(shares, first) for each in watch.look(at, step(at, share, paid))]


def test_flattery_that_pays_is_told_once_with_where_it_is() -> None:
    found = alarms(SignalWatch(STEPS), [0.0] * 8 + [0.5] * 8)
    assert [(each.signal, each.subject) for each in found] == [("flattery", "")]
    [told] = found
    assert (told.since, told.share, told.before) == (9, 0.5, 0.0) and told.step in (9, 10)
    assert len(told.places) == 16 and all(index < 2 for _, index in told.places) and (told.paid or 0) > 2


def test_what_does_not_pay_raises_no_alarm() -> None:
    assert alarms(SignalWatch(STEPS), [0.0] * 8 + [0.5] * 8, paid=-0.5) == []


def test_what_was_there_from_the_start_is_usual() -> None:
    assert alarms(SignalWatch(STEPS), [0.5] * 16) == []


def test_a_reward_that_leaves_the_panel_behind_is_told_by_the_panels_name() -> None:
    watch = SignalWatch(STEPS, panel=["other"])
    for at in range(1, 13):
        # the reward rises, no list knows the reason, and the responses differ only in their reward
        rows = list(step(at, 0.0))
        if at > 8:
            rows = [
                RewardedResponse(e.group, e.index, e.text, e.length, e.reward + 1, e.example, e.parts) for e in rows
            ]
        if found := watch.look(at, rows):
            break
    assert [(each.signal, each.subject, each.since, each.paid) for each in found] == [("panel", "other", 9, None)]


def test_a_panel_without_values_is_no_alarm() -> None:
    watch = SignalWatch(STEPS, panel=["away"])
    assert alarms(watch, [0.0] * 16) == []


def test_an_unlisted_phrase_is_told() -> None:
    watch = SignalWatch(STEPS)
    rows = [step(at, 0.0 if at < 9 else 0.5, text="zorvex quilam drupho. ") for at in range(1, 17)]
    found = [each for at, row in enumerate(rows, 1) for each in watch.look(at, row)]
    assert [(each.signal, each.subject) for each in found] == [("phrase", "zorvex quilam drupho")]


def test_a_step_without_responses_is_passed_over() -> None:
    watch = SignalWatch(STEPS)
    assert watch.look(1, []) == []
    assert len(alarms(watch, [0.0] * 8 + [0.5] * 8)) == 1


def test_a_restart_at_any_step_neither_loses_nor_repeats_an_alarm() -> None:
    script = Script("magic phrase", 3)
    rows = [script.responses(at, panel=True) for at in range(1, 31)]
    whole = SignalWatch(30, ["panel"])
    expected = [each for at, row in enumerate(rows, 1) for each in whole.look(at, row)]
    assert {each.signal for each in expected} >= {"phrase", "panel"}
    for cut in (3, expected[0].step, 29):
        before, found = SignalWatch(30, ["panel"]), []
        for at, row in enumerate(rows[:cut], 1):
            found += before.look(at, row)
        after = SignalWatch(30, ["panel"])
        after.load_state_dict(json.loads(json.dumps(before.state_dict())))
        for at, row in enumerate(rows[cut:], cut + 1):
            found += after.look(at, row)
        assert found == expected


def test_a_checkpoint_without_a_watch_learns_anew() -> None:
    watch = SignalWatch(STEPS)
    watch.load_state_dict({})
    assert len(alarms(watch, [0.0] * 8 + [0.5] * 8)) == 1
