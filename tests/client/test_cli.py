"""The command in one process with the server: what people type, and what they read."""

import json
import stat

import pytest
import touchstone.wandb as wandb
from touchstone import account, cli
from touchstone.http import Server
from touchstone.plot import curve
from touchstone.spool import send_kept
from typer.testing import CliRunner

from webapp.experiments.models import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(remote, monkeypatch, tmp_path):
    """`run("runs", "list")`: the exit code and what was printed."""
    monkeypatch.setattr(cli, "server", lambda: remote)
    monkeypatch.setenv("TOUCHSTONE_CONFIG", str(tmp_path / "account.json"))
    monkeypatch.setenv("COLUMNS", "160")

    def start(*words: str):
        return CliRunner().invoke(cli.app, [str(word) for word in words])

    return start


@pytest.fixture
def logged(remote, settings, tmp_path):
    """Two runs that were logged from outside."""
    settings.VAR = tmp_path / "var"
    for name, rate in (("first", 1e-3), ("second", 1e-4)):
        with wandb.init(project="cli", name=name, id=name, config={"lr": rate}, mode="offline", reinit=True) as begun:
            for step in range(5):
                begun.log({"loss": 5.0 - step})
            begun.log({"rows": wandb.Table(columns=["a"], data=[[1]])})
    list(send_kept(remote))
    return list(Run.objects.order_by("pk").values_list("pk", flat=True))


def test_runs_are_listed_shown_and_compared(run, logged):
    first, second = logged
    listed = run("runs", "list")
    assert listed.exit_code == 0 and "first" in listed.output and "finished" in listed.output
    rows = [json.loads(line) for line in run("runs", "list", "--json", "--limit", 1).output.splitlines()]
    assert [row["name"] for row in rows] == ["second"]
    shown = run("runs", "show", first)
    assert "cli / first" in shown.output and "lr: '0.001'" in shown.output
    compared = run("compare", first, second)
    assert compared.exit_code == 0 and "0.001" in compared.output and "0.0001" in compared.output


def test_follow_draws_to_the_end(run, logged):
    followed = run("runs", "follow", logged[0], "--key", "loss")
    assert followed.exit_code == 0
    assert "loss  1 at step 4" in followed.output and "█" in followed.output


def test_files_come_down(run, logged, tmp_path):
    there = run("download", logged[0])
    assert "files/tables/rows-5.table.json" in there.output
    assert run("download", logged[0], "tables/rows-5.table.json", "--to", tmp_path).exit_code == 0
    assert json.loads((tmp_path / "rows-5.table.json").read_text())["columns"] == ["a"]
    assert run("download", logged[0], "nothing").exit_code == 2


def test_what_is_refused_is_told(run, tmp_path):
    missing = run("runs", "show", 999_999)
    assert missing.exit_code == 1
    plan = tmp_path / "run.yaml"
    plan.write_text("recipe: policy\ndataset: nothing\nconfig: {steps: 4}\n")
    refused = run("launch", plan)
    assert refused.exit_code == 1 and Run.objects.count() == 0
    plan.write_text("- a list")
    assert run("launch", plan).exit_code == 2


def test_login_keeps_the_token_for_its_owner_alone(run, remote, monkeypatch, tmp_path):
    monkeypatch.setattr(
        account,
        "Server",
        lambda address, token: Server(address, token, transport=remote.transport, sleep=lambda seconds: None),
    )
    answer = run("login", "--address", remote.address, "--token", remote.token)
    assert answer.exit_code == 0 and "rosa@example.org" in answer.output and remote.token not in answer.output
    kept = tmp_path / "account.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600 and json.loads(kept.read_text())["token"] == remote.token
    wrong = run("login", "--address", remote.address, "--token", "ts_wrong")
    assert wrong.exit_code == 1 and json.loads(kept.read_text())["token"] == remote.token


def test_sync_sends_what_was_left(run, remote, wire):
    with wandb.init(mode="offline", reinit=True) as begun:
        begun.log({"loss": 1.0})
    wire.away = lambda request: True
    waiting = run("sync")
    assert waiting.exit_code == 2 and "lines wait" in waiting.output
    wire.away = lambda request: False
    assert run("sync").exit_code == 0 and Run.objects.get().state == "finished"
    assert run("sync").output == ""


def test_curves_have_their_ends():
    lines = curve([(step, float(step)) for step in range(100)], 20, 3)
    assert lines[0].strip().startswith("99") and lines[-1].strip().startswith("0") and len(lines) == 3
    assert lines[0].endswith("█") and curve([], 20) == [] and len(curve([(1, 2.0)], 20)) == 6
