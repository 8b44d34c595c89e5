"""Real pairs: the pairs that the model is taught, the pairs that are left for the runs, and the command with these pairs."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from trainer.claims import command, reasoned, runs, warm_start
from trainer.contracts import Example, Message, Preference, Reason, Response
from trainer.inference.models import make_tiny
from trainer.rewards.pair_judgements import read_pair_judgement

SPLITS: Any = ["train"] * 8 + ["heldout"] * 3


def pair(number: int, split: Any = "train", said: str = "A2 gives facts of {} kinds") -> Example:
    """Two raters prefer the second answer and one prefers the first."""
    reasons = [said.format(number), "argument 1 says hardly anything", "A1 is shorter to read"]
    votes = [
        Preference(a="arg7", b="arg9", strength=strength, rater=f"w{place}", reasons=(Reason(text=reason),))
        for place, (strength, reason) in enumerate(zip((2, 2, -2), reasons, strict=True))
    ]
    return Example(
        key=f"topic/{number}",
        prompt=(Message(role="user", content="Tea"),),
        split=split,
        responses=(Response(id="arg7", text=f"no {number}"), Response(id="arg9", text=f"yes {number}")),
        preferences=tuple(votes),
    )


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[Example]:
    for name, count in (("SHOWN", 3), ("TRAINED", 4), ("HELD_OUT", 2)):
        monkeypatch.setattr(reasoned, name, count)
    return [pair(number, split) for number, split in enumerate(SPLITS)]


def test_pairs_that_were_shown_are_none_of_those_that_are_judged(few: list[Example]) -> None:
    shown, judged = reasoned.split_examples(few)
    assert len(shown) == 3 and [row.split for row in judged] == ["train"] * 4 + ["heldout"] * 2
    assert not {row.key for row in shown} & {row.key for row in judged}
    assert reasoned.split_examples(few) == (shown, judged), "the same draw each time, or a command could not go on"


def test_a_demonstration_is_the_verdict_of_most_with_their_reasons_in_the_order_that_is_shown() -> None:
    seen = set()
    for seed in range(8):
        found = reasoned.demonstration(pair(5), random.Random(seed))  # noqa: S311 - a draw, not a secret
        question, answer = found.prompt[-1].content, found.reference or ""
        better, worse = "BA" if question.index("no 5") < question.index("yes 5") else "AB"
        reasons = (f"{better} gives facts of 5 kinds", f"{worse} says hardly anything")
        read = read_pair_judgement(answer, "lines")
        assert read.reasons == reasons and read.well_formed and answer.endswith(f"Verdict: {better} better")
        seen.add(better)
    assert seen == {"A", "B"}


def test_pairs_that_nobody_decided_or_gave_no_reasons_for_are_not_used(few: list[Example]) -> None:
    tied = few[0].model_copy(update={"preferences": few[0].preferences[::2]})
    silent = few[1].model_copy(update={"preferences": few[1].preferences[:1]})
    long = few[2].model_copy(update={"responses": (few[2].responses[0], Response(id="arg9", text="y" * 500))})
    with pytest.raises(
        ValueError,
        match="5 short training pairs with 2 reasons or more and 3 such held-out pairs; the claim needs 7 and 2",
    ):
        reasoned.split_examples([tied, silent, long, *few[3:]])


def test_the_command_says_which_data_it_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["rationale", "--size", "demo", "--model", str(tmp_path / "none"), "--out", str(tmp_path / "out")]
    assert command.main(arguments) == 2
    assert "has no data of its own in this size; give --data a file of examples" in capsys.readouterr().err
    (tmp_path / "rows.jsonl").write_text('{"topic": "tea"}\n')
    with pytest.raises(ValueError, match="rows.jsonl holds no examples: .*give --data"):
        reasoned._examples(tmp_path / "rows.jsonl")


def test_it_shows_the_model_judgements_once_and_tells_intervals_over_pairs(
    tmp_path: Path, few: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[runs.ArmJob] = []

    def perform(jobs: Any, processes: int, tell: Any) -> list[str]:
        done.extend(jobs)
        return [problem for job in jobs if not job.result.exists() and (problem := runs.run(job))]

    for module in (command, warm_start):
        monkeypatch.setattr(module, "perform", perform)
    monkeypatch.setattr(warm_start, "SETTINGS", warm_start.SETTINGS | {"steps": 1, "batch_size": 2})
    make_tiny(tmp_path / "model")
    data, out = tmp_path / "ukp.jsonl", tmp_path / "out"
    data.write_text("".join(f"{row.canonical()}\n" for row in few))
    arguments = ["rationale", "--size", "demo", "--seeds", "0", "--steps", "1", "--jobs", "1", "--out", str(out)]
    arguments += ["--data", str(data), "--model", str(tmp_path / "model")]
    assert command.main(arguments) == 0
    assert command.main(arguments) == 0
    assert [job.arm for job in done] == ["shown", "outcome", "hybrid", "outcome", "hybrid"], "shown once"
    assert done[1].model == done[0].folder / "outputs" / "policy" and done[1].recipe == "judge"
    text = (out / "report.md").read_text()
    assert "verdicts that are right | 0.000 [0.000, 0.658] | 0.000 [0.000, 0.658] | 2 |" in text
    assert "**hybrid training raises both: not decided** (one seed has no interval)" in text
    measured = json.loads((out / "report.json").read_text())["measures"]["hybrid"]["0"]
    assert measured["eval/unreadable:first"] == 1.0 and measured["eval/pairs:last"] == 2.0
