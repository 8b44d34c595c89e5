"""The command from start to end with an untrained model: it resumes, refuses other settings, and reports."""

import json
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainer.claims import command, faults, rubrics, runs, toy, turns
from trainer.claims.measures import of_responses
from trainer.config import resolve
from trainer.contracts import jsonlines
from trainer.inference.chat import encode_prompt
from trainer.inference.models import load_tokenizer, make_tiny
from trainer.judges.kinds.pairwise import PairwiseSpec
from trainer.judges.local import LocalTarget
from trainer.metrics.claims import PLANS, Arm, Claim, ClaimPart, Plan, Setting
from trainer.metrics.claims.plan import merge_config
from trainer.rubrics import score_rubric

RUSCARL = PLANS["ruscarl"]
LESS: dict[str, Any] = {"rollout": {"prompts_per_step": 2}, "evaluation": {"max_examples": 16}}
"""Settings of runs in the process of the tests: whether a plan is carried out does not depend on how much its runs sample."""
ASKING = {"judge": "first", "protocol": "pairwise", "against": "reference"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    make_tiny(tmp_path / "out" / "model")
    return tmp_path / "out"


def _smaller(config: dict[str, Any]) -> dict[str, Any]:
    return merge_config(config, {name: less for name, less in LESS.items() if name in config})


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> list[runs.ArmJob]:
    """Runs the jobs one after the other, because only one process has loaded torch. Returns the jobs as they end."""
    done: list[runs.ArmJob] = []

    def perform(jobs: Any, processes: int, tell: Any) -> list[str]:
        left = [job for job in jobs if not job.result.exists()]
        done.extend(left)
        return [problem for job in left if (problem := runs.run(replace(job, config=_smaller(job.config))))]

    monkeypatch.setattr(command, "perform", perform)
    monkeypatch.setattr("trainer.metrics.claims.plan.RESPONSES", 2)
    return done


def test_a_command_given_again_does_only_what_is_left(
    out: Path, in_this_process: list[runs.ArmJob], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["ruscarl", "--seeds", "0", "--steps", "1", "--jobs", "1", "--out", str(out)]
    assert command.main(arguments) == 0
    verdicts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(verdicts.values()) == {"not decided"}  # one seed decides nothing
    assert [job.arm for job in in_this_process] == [arm.name for arm in RUSCARL.arms]
    (out / "runs" / "full" / "seed-0" / "result.json").unlink()
    assert command.main([*arguments, "--publish", str(out / "docs")]) == 0
    assert [job.arm for job in in_this_process[5:]] == ["full"]
    text = (out / "docs" / "ruscarl-tiny.md").read_text()
    assert "python -m trainer claims ruscarl" in text and "RuscaRL*" in text
    stored = json.loads((out / "report.json").read_text())
    measured = stored["measures"]["ruscarl"]["0"]
    assert 0 <= measured["score"] <= 1 and measured["novelty"] > 0 and measured["entropy"] > 0
    assert 0 <= measured["pass@1"] <= measured["pass@2"] <= 1 and measured["best@2"] >= measured["best@1"]
    assert command.main(["ruscarl", "--seeds", "0", "--steps", "2", "--out", str(out)]) == 2
    assert "holds a run with other settings" in capsys.readouterr().err


@pytest.mark.slow
def test_in_a_process_of_its_own_a_run_that_fails_is_named_and_the_next_one_has_a_result(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})  # one thread is faster for such a small model
    # the run's process must not have this variable, and this process must keep it
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    environment = dict(os.environ)
    data = out / "examples.jsonl"
    data.write_text("".join(f"{row.canonical()}\n" for row in toy.examples(2)))
    config = RUSCARL.config(RUSCARL.arms[0], RUSCARL.shared, seed=0) | {"steps": 1}
    good = runs.ArmJob("rubric", 0, config, out / "good", data, out / "model")
    bad = runs.ArmJob("rubric", 1, config, out / "bad", data, out / "nowhere")
    leaves = runs.Used("rubric", bad.result, bad.folder / "outputs" / "policy")
    after = runs.ArmJob("later", 1, config, out / "after", data, out / "model", uses={"base": leaves})
    runs.prepare([good, bad, after])
    told: list[str] = []
    problems = runs.perform([after, bad, good], 1, told.append)  # torch is imported once
    assert len(problems) == 2 and problems[0].startswith("rubric, seed 1: ") and "no config.json here" in problems[0]
    unmet = "later, seed 1: not started: it uses the model of rubric, and that run has no result for this seed"
    assert problems[1] == unmet and not (after.folder / "events.jsonl").exists()
    assert json.loads(good.result.read_text())["curve"]["score"].keys() == {"0", "1"}
    assert any(line.startswith("1 of 3 runs, 1 of 3 steps") for line in told)
    assert runs.perform([good], 1, told.append) == []
    assert dict(os.environ) == environment, "what comes after it in this process has the threads that it had"


CHAINED = Plan(
    "chained",
    "Two policies and what both teach",
    "",
    arms=(
        Arm("first", "the first", {"data": {"shuffle": False}}),
        Arm("second", "goes on from the first", uses={"base": "first"}),
        Arm(
            "both",
            "distilled",
            {
                "model": {"lora": None},
                "teachers": [{"model": "first", "stage": "easy"}, {"model": "second"}],
                "rollout": {"prompts_per_step": 2, "group_size": 1, "max_new_tokens": 4},
                "evaluation": {"every": 1, "max_examples": 2},
            },
            recipe="distill",
            uses={"base": "first", "teachers.0.model": "first/policy", "teachers.1.model": "second"},
        ),
    ),
    claims=(Claim("both", (ClaimPart("", "eval/rubric_score:last", "both", "first"),)),),
    sizes={
        "tiny": Setting(
            merge_config(PLANS["stages"].shared, {"rollout": {"prompts_per_step": 2, "group_size": 2}}), (0,)
        )
    },
    task="graded",
    measured="curves",
)


def test_an_arm_uses_what_earlier_arms_of_its_seed_have_left(
    out: Path, in_this_process: list[runs.ArmJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLANS, "chained", CHAINED)
    assert command.main(["chained", "--seeds", "0", "--steps", "1", "--jobs", "1", "--out", str(out)]) == 0
    first, second, both = in_this_process
    left = out / "runs" / "first" / "seed-0" / "outputs" / "policy"
    assert second.models == {"base": left} and (left / "config.json").is_file()
    assert both.models == {
        "base": left,
        "teachers.0.model": left,
        "teachers.1.model": second.folder / "outputs" / "policy",
    }
    assert (
        not both.waits
        and both.recipe == "distill"
        and both.config["steps"] == 1
        and first.models["base"] == out / "model"
    )
    measured = json.loads((out / "report.json").read_text())["measures"]
    ends, begins = (measured[arm]["0"]["curve"]["eval/rubric_score"] for arm in ("first", "second"))
    assert ends["1"] == begins["0"]  # the second call continues where the first has ended


def test_an_arm_uses_no_arm_that_stands_behind_it() -> None:
    turned = replace(CHAINED, arms=CHAINED.arms[::-1])
    with pytest.raises(ValueError, match="chained: arm both uses first, which is not an earlier arm"):
        turned.used(turned.arms[0])


ASKED = Plan(
    "asked",
    "A judge, and a policy that it rewards",
    "",
    arms=(
        Arm("judge", "the judge", PLANS["rationale"].shared, recipe="judge"),
        Arm("policy", "the policy", {"rewards": [{"kind": "judge", **ASKING}]}, uses={"rewards.0.judge": "judge"}),
        Arm("later", "from the judge's weights", uses={"base": "judge"}),
    ),
    claims=(Claim("it rises", (ClaimPart("", "eval/reward:change", "policy"),)),),
    sizes={"tiny": Setting({"steps": 1, "scaffold": None}, (0,))},
    task="faults",
    measured="curves",
)


def test_a_reward_asks_the_judge_that_an_earlier_arm_of_its_seed_leaves(tmp_path: Path) -> None:
    uses = command._uses(ASKED, ASKED.arms[1], ASKED.shared, tmp_path, 3)
    used = uses["rewards.0.judge"]
    assert used.model == tmp_path / "runs" / "judge" / "seed-3" / "outputs" / "judge"
    assert isinstance(used.asked_as, PairwiseSpec) and used.asked_as.form == "lines"
    job = runs.ArmJob("", 3, ASKED.config(ASKED.arms[1], ASKED.shared, 3), tmp_path, tmp_path, tmp_path, uses=uses)
    assert job.models == {"base": tmp_path} and job.waits, "a judge is asked: the run has no model of it"
    (name, judge), *more = runs._judges(job, resolve(job.recipe, job.config)).items()
    assert name == "first" and isinstance(judge.target, LocalTarget) and judge.target.model == str(used.model)
    later = command._uses(ASKED, ASKED.arms[2], ASKED.shared, tmp_path, 3)
    assert later["base"].asked_as is None and not more


def test_an_arm_that_trains_no_judge_can_be_asked_as_none(tmp_path: Path) -> None:
    asking = replace(ASKED.arms[1], name="third", uses={"rewards.0.judge": "policy"})
    plan = replace(ASKED, arms=(*ASKED.arms, asking))
    with pytest.raises(ValueError, match="asked: arm policy is used as a judge, but its recipe policy trains no model"):
        command._uses(plan, asking, plan.shared, tmp_path, 0)


def test_each_seed_may_have_data_of_its_own_and_arms_learn_a_part_of_it(
    out: Path, in_this_process: list[runs.ArmJob]
) -> None:
    assert command.main(["kcenter", "--seeds", "0", "7", "--steps", "1", "--jobs", "1", "--out", str(out)]) == 0
    assert {job.data for job in in_this_process} == {out / "data" / f"seed-{seed}.jsonl" for seed in (0, 7)}
    assert [job.data for job in in_this_process[:4]] == [out / "data" / "seed-0.jsonl"] * 4
    assert [job.config.get("data", {}).get("select") for job in in_this_process[:4]] == [
        None,
        "random",
        "cover",
        "distance",
    ]
    first, other = (job.data.read_text() for job in (in_this_process[0], in_this_process[4]))
    assert len(jsonlines.lines(first)) == 1064 and first != other
    text = (out / "report.md").read_text()
    assert "1 steps of 16 demonstrations, AdamW" in text and "64 held-out prompts" in text


def test_stages_in_a_row_are_read_by_their_steps(out: Path, in_this_process: list[runs.ArmJob]) -> None:
    assert command.main(["cross_stage", "--seeds", "0", "--steps", "1", "--jobs", "1", "--out", str(out)]) == 0
    measured = json.loads((out / "report.json").read_text())["measures"]["distilled"]["0"]
    assert 0 <= measured["eval/domain/first:at_80"] <= 1 and measured["eval/domain/first:since_80"] == 0.0
    assert measured["eval/gap:last"] is None, "it ended before it distilled"


def test_a_claim_about_judges_runs_their_recipe_and_is_read_off_its_curves(
    tmp_path: Path,
    in_this_process: list[runs.ArmJob],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(faults, "TRAINED", 240)  # every run reads all pairs, and a step uses a few
    out = tmp_path / "out"
    faults.make_model(out / "model", steps=1)
    arguments = ["rationale", "--seeds", "0", "1", "--steps", "2", "--jobs", "1", "--out", str(out)]
    assert command.main(arguments) == 0
    assert [(job.arm, job.seed) for job in in_this_process] == [
        ("outcome", 0),
        ("hybrid", 0),
        ("outcome", 1),
        ("hybrid", 1),
    ]
    stored = json.loads((out / "report.json").read_text())
    measured = stored["measures"]["hybrid"]["1"]
    assert measured["eval/rc:change"] == measured["eval/rc:last"] - measured["eval/rc:first"]
    assert measured["curve"]["eval/accuracy"].keys() == {"0", "2"}
    assert [claim["p_holm"] for claim in stored["claims"]] and "Holm" in (out / "report.md").read_text()


def test_a_claim_about_rubric_writers_grades_rubrics_by_the_words_of_its_task(
    tmp_path: Path,
    in_this_process: list[runs.ArmJob],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rubrics, "TRAINED", 240)  # every run reads all pairs, and a step uses a few
    out = tmp_path / "out"
    rubrics.make_model(out / "model", steps=1)
    assert command.main(["mams", "--seeds", "0", "--steps", "1", "--jobs", "1", "--out", str(out)]) == 0
    assert [job.arm for job in in_this_process] == ["preference", "quality", "both"]
    measured = json.loads((out / "report.json").read_text())["measures"]["both"]["0"]
    assert measured["curve"]["eval/quality"].keys() == {"0", "1"}
    tokenizer = load_tokenizer(out / "model")
    messages, answer = next(rubrics.lessons(random.Random(0)))  # noqa: S311 - a task, not a secret
    assert len(encode_prompt(tokenizer, messages)) < 40 and len(tokenizer(answer)["input_ids"]) == 9


def test_a_claim_about_turns_runs_all_orders_and_reads_the_variances(
    tmp_path: Path,
    in_this_process: list[runs.ArmJob],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "TRAINED", 240)  # every run reads all pairs, and a step uses a few
    out = tmp_path / "out"
    turns.make_model(out / "model", steps=1)
    assert command.main(["rubric_arm", "--seeds", "0", "--steps", "1", "--jobs", "1", "--out", str(out)]) == 0
    assert [job.arm for job in in_this_process] == ["judge_first", "writer_first", "no_format"]
    measured = json.loads((out / "report.json").read_text())["measures"]["judge_first"]["0"]
    assert measured["curve"]["eval/accuracy"].keys() == {"0", "1"}
    assert {"variance/log_ratio:first", "variance/norm_margin:first"} <= measured.keys()
    assert "at most 16 tokens (judge) or 16 prompts" in (out / "report.md").read_text()
    tokenizer = load_tokenizer(out / "model")
    taught = turns.lessons(random.Random(0))  # noqa: S311 - a task, not a secret
    messages, answer = next(each for each in taught if len(each[0]) == 1)
    assert len(encode_prompt(tokenizer, messages)) < 60 and len(tokenizer(answer)["input_ids"]) < 16


def test_the_pieces_of_the_task_are_tokens_of_their_own(tmp_path: Path) -> None:
    faults.make_model(tmp_path / "model", steps=1)
    tokenizer = load_tokenizer(tmp_path / "model")
    (messages, answer) = next(faults.lessons(random.Random(0)))  # noqa: S311 - a task, not a secret
    assert len(encode_prompt(tokenizer, messages)) < 30 and len(tokenizer(answer)["input_ids"]) == 3
    assert tokenizer.decode(tokenizer(answer)["input_ids"]) == answer


def test_a_folder_of_another_claim_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "claim").write_text("ruscarl-tiny")
    assert command.main(["rationale", "--out", str(tmp_path)]) == 2
    assert "holds the runs of ruscarl-tiny; give another --out" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["claim"]


def test_a_size_that_a_plan_lacks_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["mams", "--size", "demo"])
    assert "mams has no size demo; it has tiny" in capsys.readouterr().err


def test_the_toys_rubrics_can_be_met_and_the_topics_are_in_both_splits() -> None:
    rows = toy.examples(4)
    for row in rows:
        assert row.rubric is not None
        answer = " ".join(criterion.text for criterion in row.rubric.criteria)
        assert score_rubric(row.rubric, answer).score == 1.0
        assert score_rubric(row.rubric, "").score == 0.0
    topics = {split: {row.key.split("-")[0] for row in rows if row.split == split} for split in ("train", "heldout")}
    assert topics["train"] == topics["heldout"] == set(toy.TOPICS)
    assert toy.examples(4) == rows and len({row.key for row in rows}) == len(rows)


def test_curves_are_read_once_per_step_and_their_shape_is_told(tmp_path: Path) -> None:
    entropy = [1.0, 1.0, 1.0, 1.0, 1.0, 1.5, 1.5, 1.5, 1.5, 1.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    score = {0: 0.2, 5: 0.6, 10: 0.45, 15: 0.5}
    events = [
        {"step": step, "data": {"kind": "metrics", "values": {"eval/rubric_score": v}}} for step, v in score.items()
    ]
    events += [
        {"step": step, "data": {"kind": "metrics", "values": {"policy/entropy": value}}}
        for step, value in enumerate(entropy, start=1)
        for _ in range(2)  # a resumed run repeats the steps after its checkpoint
    ]
    file = tmp_path / "events.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    found = of_responses(file)
    assert found["curve"]["score"] == score and len(found["curve"]["entropy"]) == 15
    assert found["drawdown"] == pytest.approx(0.15)
    assert (found["entropy_rise"], found["entropy_fall"]) == (pytest.approx(0.5), pytest.approx(1.0))


def test_a_recipe_that_does_not_exist_and_a_file_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(["dapo"])
    assert stopped.value.code == 2
    assert command.main(["oapl", "--size", "demo", "--data", str(tmp_path / "no.jsonl"), "--out", str(tmp_path)]) == 2
    assert "the file does not exist; give another with --data" in capsys.readouterr().err
