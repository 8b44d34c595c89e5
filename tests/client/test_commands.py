"""Commands of groups: what they send, what they print, and that a bad line changes neither."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import cycle

import pytest
from django.utils import timezone
from touchstone import cli, terminal

from tests.webapp.experiments.conftest import make_model, make_version
from trainer.contracts import jsonlines
from webapp.evaluation.models import Evaluation, Recording
from webapp.experiments.models import LogLine, RepeatTime, Run, RunRepeat, Sweep
from webapp.notices.models import Watch

pytestmark = pytest.mark.django_db
RUN = "recipe: policy\ndataset: Demo prompts\nconfig: {steps: 4}\n"
SWEEP = (
    "recipe: policy\ndataset: Demo prompts\nconfig: {steps: 4}\naxes: [{path: optim.lr, values: [1.0e-4, 1.0e-3]}]\n"
)


@pytest.fixture
def plans(team, tmp_path):
    """A dataset, a model, and files with which runs, sweeps and evaluations begin."""
    make_version(team.researcher, name="Demo prompts")
    make_model(team)
    (tmp_path / "run.yaml").write_text(RUN)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    (tmp_path / "verdicts.jsonl").write_text(
        '{"judge": "j", "pair": "p", "group": "g", "label": "A", "given": "A", "swapped": "B"}\n'
    )
    return tmp_path


@pytest.fixture
def launched(run, plans) -> Run:
    return Run.objects.get(pk=int(run("launch", plans / "run.yaml").output))


def test_settings_are_a_nested_config():
    told = ["optim.lr=1e-4", "steps=80", "optim.warmup=true", "model.name=small", "phases=[1, 2]"]
    assert terminal.parse_settings(told) == {
        "optim": {"lr": 1e-4, "warmup": True}, "steps": 80, "model": {"name": "small"}, "phases": [1, 2]
    }  # fmt: skip
    for wrong in (["optim.lr"], ["=3"], ["optim=1", "optim.lr=2"]):
        with pytest.raises(ValueError, match="="):
            terminal.parse_settings(wrong)


def test_a_run_is_forked_limited_and_moved(run, launched):
    forked = run("runs", "fork", launched.pk, "--set", "optim.lr=1e-3", "--name", "hotter")
    row = Run.objects.get(pk=int(forked.output))
    assert row.name == "hotter" and row.config["optim"]["lr"] == 1e-3 and row.config["steps"] == 4
    assert run("runs", "limit", row.pk, "--seconds", 60, "--tokens", 900).exit_code == 0
    row.refresh_from_db()
    assert (row.time_limit, row.token_limit) == (timedelta(seconds=60), 900)
    assert run("runs", "limit", row.pk, "--seconds", 0).exit_code == 0
    assert json.loads(run("runs", "limit", row.pk).output)["token_limit"] == 900
    row.refresh_from_db()
    assert (row.time_limit, row.token_limit) == (None, 900)
    assert run("runs", "priority", row.pk, "high").exit_code == 0
    assert run("runs", "priority", row.pk, "highest").exit_code == 1
    assert run("runs", "schedule", row.pk, (timezone.now() + timedelta(days=1)).isoformat()).exit_code == 0
    assert "waiting: 2" in run("runs", "line").output
    assert run("runs", "fork", row.pk, "--set", "optim").exit_code == 2


def test_a_run_stops_early_by_a_rule_that_is_shown_and_taken_away(run, launched):
    set_up = run("runs", "early", launched.pk, "--metric", "eval/rubric_score", "--patience", 5, "--min-delta", 0.01)
    launched.refresh_from_db()
    assert set_up.exit_code == 0 and launched.stop_early["patience"] == 5, set_up.output
    assert json.loads(run("runs", "early", launched.pk).output)["metric"] == "eval/rubric_score"
    assert json.loads(run("runs", "early", launched.pk, "--off", "--json").output)["stop_early"] is None
    launched.refresh_from_db()
    assert launched.stop_early is None
    half = run("runs", "early", launched.pk, "--metric", "eval/rubric_score")
    assert half.exit_code == 2 and "needs both --metric and --patience" in half.output
    assert run("runs", "early", launched.pk, "--off", "--patience", 5).exit_code == 2
    unknown = run("runs", "early", launched.pk, "--metric", "nothing", "--patience", 5)
    assert unknown.exit_code == 1 and "metric" in unknown.output


def test_a_run_is_renamed_and_deleted(run, launched):
    assert json.loads(run("runs", "rename", launched.pk, "colder", "--json").output)["name"] == "colder"
    early = run("runs", "delete", launched.pk, "--yes")
    assert early.exit_code == 1 and Run.objects.exists(), "a run that is not over stays"
    Run.objects.update(state="finished")
    assert run("runs", "delete", launched.pk).exit_code != 0 and Run.objects.exists(), "nobody has said yes"
    assert run("runs", "delete", launched.pk, "--yes").exit_code == 0 and not Run.objects.exists()


def test_a_run_is_repeated_paused_resumed_and_ended(run, launched):
    added = run("repeats", "add", launched.pk, "--at", "02:00", "--weekday", "sunday", "--zone", "Europe/Vienna")
    repeat = RunRepeat.objects.get()
    assert added.exit_code == 0 and f"repeat {repeat.pk} · run {launched.pk}" in added.output
    assert (repeat.weekday, repeat.zone, repeat.newest_data) == (6, "Europe/Vienna", False)
    assert "waiting · next 2" in added.output and "none yet" in run("repeats", "list").output
    assert json.loads(run("repeats", "pause", repeat.pk, "--json").output)["state"] == "paused"
    assert " · paused" in run("repeats", "pause", repeat.pk).output, "twice is harmless, and has no next time"
    assert "waiting · next 2" in run("repeats", "resume", repeat.pk).output
    RepeatTime.objects.create(repeat=repeat, due=timezone.now(), outcome="refused", reason="the dataset is gone")
    told = run("repeats", "list").output  # a narrow terminal breaks the cell
    assert "refused" in told and "dataset is gone)" in told
    [row] = jsonlines.rows(run("repeats", "list", "--json").output)
    assert row["times"][0]["outcome"] == "refused"
    assert run("repeats", "end", repeat.pk).exit_code == 0 and not RunRepeat.objects.exists()
    assert run("repeats", "end", repeat.pk).exit_code == 1
    both = run("repeats", "add", launched.pk, "--at", "02:00", "--every-hours", 4)
    assert both.exit_code == 1 and "every_hours" in both.output
    again = ("repeats", "add", launched.pk, "--every-hours", 12, "--newest-data", "--key", "k", "--json")
    first, second = (json.loads(run(*again).output)["id"] for _ in range(2))
    assert first == second and RunRepeat.objects.get().newest_data


def test_datasets_and_aliases_are_found_by_their_commands(run, plans, team):
    [dataset] = jsonlines.rows(run("datasets", "list", "--json").output)
    assert [row["number"] for row in jsonlines.rows(run("datasets", "show", dataset["id"], "--json").output)] == [1]
    assert "Demo prompts" in run("datasets", "show", dataset["id"]).output
    assert "frozen" in run("datasets", "freeze", dataset["id"], 1).output
    [model] = jsonlines.rows(run("models", "list", "--json").output)
    assert "@champion points at" in run("models", "alias", "champion", model["id"]).output
    assert "@champion" in run("models", "show", model["id"]).output and "champion" in run("models", "aliases").output


def test_a_table_that_a_program_reads_has_a_row_on_a_line():
    told = (
        "import sys, touchstone.terminal as t; t.print_rows([{'a': 'word ' * 60, 'b': 2}], {'a': 'a', 'b': 'b'}, False)"
    )
    env = {
        name: value for name, value in os.environ.items() if name != "COLUMNS"
    }  # some library sets it for all that follows
    done = subprocess.run(
        [sys.executable, "-c", told], cwd="client", env=env, capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) == 2


def test_every_command_teaches(run):
    for words in ((), *((name,) for name in cli.GROUPS)):
        app = cli.GROUPS[words[0]] if words else cli.app
        told = run(*words, "--help")
        assert told.exit_code == 0
        for each in app.registered_commands:
            assert each.short_help and "\n" not in each.help, each
    assert {each.name or each.callback.__name__ for each in cli.app.registered_commands} | {*cli.GROUPS} == {
        *cli.HEADINGS
    }
    assert run("--version").exit_code == 0


def test_a_log_is_printed_to_its_end(run, launched):
    time = datetime(2026, 11, 30, tzinfo=UTC)
    lines = [
        LogLine.objects.create(run=launched, step=step, time=time, level="INFO", message=f"line {step}")
        for step in range(1, 4)
    ]
    assert "line 3" in run("runs", "log", launched.pk).output
    later = run("runs", "log", launched.pk, "--after-seq", lines[0].pk, "--json")
    assert [line["message"] for line in jsonlines.rows(later.output)] == ["line 2", "line 3"]


def test_a_sweep_is_started_shown_and_started_again(run, plans):
    sweep = Sweep.objects.get(pk=int(run("sweeps", "start", plans / "sweep.yaml", "--key", "k").output))
    assert run("sweeps", "start", plans / "sweep.yaml", "--key", "k").output.strip() == str(sweep.pk)
    shown = run("sweeps", "show", sweep.pk)
    words = " ".join(shown.output.split())  # a narrow terminal breaks the line elsewhere
    assert shown.exit_code == 0 and "of 2 trials over" in words and "no trial has a value yet" in words
    again = run("sweeps", "again", sweep.pk, "--set", "seeds=1")
    assert Sweep.objects.get(pk=int(again.output)).seeds == 1 != sweep.seeds
    Sweep.objects.filter(pk=sweep.pk).update(state="stopped")
    followed = run("sweeps", "follow", sweep.pk)
    assert followed.exit_code == 1 and "stopped" in followed.output
    assert len(jsonlines.rows(run("sweeps", "list", "--json").output)) == 2


def test_an_evaluation_is_started_followed_and_started_again(run, plans):
    recording = int(run("evaluations", "record", plans / "verdicts.jsonl").output)
    assert Recording.objects.get().pk == recording
    plan = plans / "evaluation.yaml"
    plan.write_text(f"{{recipe: judge_audit, recording: {recording}, name: audit}}")
    evaluation = int(run("evaluations", "start", plan).output)
    assert run("evaluations", "results", evaluation).exit_code == 1
    Evaluation.objects.filter(pk=evaluation).update(state="failed", problem="No verdicts.")
    followed = run("evaluations", "follow", evaluation)
    assert followed.exit_code == 1 and "No verdicts." in followed.output
    again = Evaluation.objects.get(pk=int(run("evaluations", "again", evaluation).output))
    assert again.rerun_of_id == evaluation
    assert run("evaluations", "cancel", again.pk).exit_code == 0
    assert "cancelled" in run("evaluations", "list", "--state", "cancelled").output


def test_a_thing_is_watched_and_no_longer(run, launched):
    assert "You watch run" in run("watch", "run", launched.pk).output
    assert "no longer watch" in run("watch", "run", launched.pk, "--off").output
    assert [row.on for row in Watch.objects.all()] == [False]
    assert run("notices", "--unread").exit_code == 0


def test_commands_do_their_work_once_on_a_bad_line(run, plans, wire):
    """The first try of each request does not arrive, and the answer to the second is lost."""
    tries = cycle(("away", "lost", "good"))
    now = [""]

    def away(request) -> bool:
        now[0] = next(tries)
        return now[0] == "away"

    wire.away, wire.lost = away, lambda request: now[0] == "lost"
    launched = run("launch", plans / "run.yaml")
    assert launched.exit_code == 0 and Run.objects.count() == 1, launched.output
    number = launched.output.strip()
    for words in (
        ("runs", "fork", number),
        ("runs", "then", number, "evaluation"),
        ("sweeps", "start", plans / "sweep.yaml"),
        ("runs", "list"),
        ("runs", "priority", number, "low"),
        ("watch", "run", number),
    ):
        done = run(*words)
        assert done.exit_code == 0, f"{words}: {done.output}"
    assert Run.objects.count() == 2 and Sweep.objects.count() == 1
