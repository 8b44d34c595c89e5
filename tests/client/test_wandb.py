"""A program that logs to W&B logs to Touchstone after one changed line, even if the server is away or the program dies."""

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import touchstone.wandb as wandb
from touchstone.server import Server
from touchstone.spool import Sender, Spool, send_kept

from tests.timeouts import SECONDS
from webapp.accounts.tokens.services import create_token
from webapp.experiments.models import Artifact, Point, Run
from webapp.notices.models import Notice
from webapp.tracking.models import LoggedRun

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def ended():
    yield
    wandb.finish()


@pytest.fixture
def begun(remote):
    """`begun(**options)` begins a run that is stored on disk. `send_spool` sends the stored records to the server."""

    def begin(**options) -> wandb.Run:
        return wandb.init(**{"project": "shim", "mode": "offline", **options})

    return begin


def send_spool(run: wandb.Run, remote: Server) -> Sender:
    sender = Sender(remote, run._spool)
    sender.send()
    return sender


def test_what_is_logged_is_a_run_like_any_other(begun, remote, settings, tmp_path):
    settings.VAR = tmp_path / "var"
    run = begun(name="one", config={"optim": {"lr": 1e-4}, "seed": 3}, tags=["nightly"], notes="as before")
    for step in range(3):
        wandb.log({"loss": 2.0 - step, "eval": {"score": step}, "on": True, "said": "word"})
    wandb.log({"table": wandb.Table(columns=["a", "b"], data=[[1, "x"], [2, "y"]])})
    wandb.config.epochs = 4
    wandb.alert("Low score", "it fell", level=wandb.AlertLevel.WARN)
    wandb.alert("Low score", "left out, because a minute has not passed")
    wandb.summary["best"] = "model-2"
    run.finish()
    assert send_spool(run, remote).refused == []

    row = Run.objects.get()
    assert (str(row), row.state, row.experiment.name, row.step) == ("one", "finished", "shim", 2)
    assert row.config == {"optim.lr": "0.0001", "seed": "3", "epochs": "4"}
    assert list(Point.objects.filter(key="loss").order_by("step").values_list("value", flat=True)) == [2, 1, 0]
    assert set(Point.objects.values_list("key", flat=True)) == {"loss", "eval.score", "on"}
    tags = LoggedRun.objects.get().tags
    assert tags["notes"] == "as before" and tags["tag.nightly"] == "yes" and tags["said"] == "word"
    assert tags["alert.1"] == "WARN: Low score · it fell" and len([key for key in tags if "alert" in key]) == 1
    [notice] = Notice.objects.filter(event="run.alert")
    assert (notice.facts["title"], notice.facts["level"]) == ("Low score", "WARN")
    assert tags["summary.best"] == "model-2"
    file = tmp_path / "var" / "runs" / str(row.pk) / Artifact.objects.get().path
    assert json.loads(file.read_text()) == {"columns": ["a", "b"], "data": [[1, "x"], [2, "y"]]}


def test_steps_commits_and_what_goes_by(begun, remote, caplog):
    run = begun()
    wandb.log({"a": 1.0}, step=5)
    wandb.log({"b": 2.0}, step=5)
    wandb.log({"a": 9.0}, step=3)  # ignored: the step is over
    wandb.log({"c": 1.0}, commit=False)
    wandb.log({"d": float("nan"), "odd": object()}, step=6)
    run.finish()
    send_spool(run, remote)
    points = {(row.key, row.step): row.value for row in Point.objects.all()}
    assert points == {("a", 5): 1.0, ("b", 5): 2.0, ("c", 5): 1.0, ("d", 6): None}
    assert Point.objects.get(key="d").not_finite == "NaN"
    assert "already at step 5" in caplog.text and "is not logged" in caplog.text


def test_a_server_that_is_away_loses_nothing(begun, remote, wire):
    run = begun()
    wire.away = lambda request: True
    wandb.log({"loss": 1.0})
    assert send_spool(run, remote).problem.endswith("does not answer: refused")
    wire.away = lambda request: False
    wandb.log({"loss": 0.5})
    run.finish()
    assert send_spool(run, remote).problem == ""
    assert list(Point.objects.order_by("step").values_list("value", flat=True)) == [1.0, 0.5]


def test_answers_that_get_lost_double_nothing(begun, remote, wire):
    broken = set()

    def first_time(request) -> bool:
        new = request.url.path not in broken
        broken.add(request.url.path)
        return new

    wire.lost = first_time
    run = begun(name="once")
    wandb.log({"loss": 1.0})
    run.finish()
    assert send_spool(run, remote).refused == []
    assert Run.objects.count() == 1 and Point.objects.count() == 1
    assert len([each for each in wire.asked if each.endswith("runs/create")]) == 2


def test_a_program_that_died_is_sent_later_and_goes_on(begun, remote):
    run = begun(id="kept")
    for step in range(3):
        wandb.log({"loss": float(step)})
    with run._spool.lines.open("a") as out:
        out.write('{"do": "metrics", "met')  # the process died while it wrote this
    run._spool.release()
    wandb.run = None
    assert [(name, left) for name, left, _ in send_kept(remote)] == [("kept", 0)]
    assert Run.objects.get().state == "running"

    with pytest.raises(wandb.UsageError, match="resume"):
        begun(id="kept")
    again = begun(id="kept", resume="allow")
    assert again.step == 3
    wandb.log({"loss": 9.0})
    again.finish()
    send_spool(again, remote)
    assert Run.objects.get().state == "finished" and Point.objects.count() == 4


def test_no_two_programs_send_one_run(begun, remote):
    run = begun(id="mine")
    with pytest.raises(wandb.UsageError, match="Another program"):
        wandb._spool("mine", "allow")
    assert list(send_kept(remote)) == []
    run.finish()


def test_what_the_server_refuses_is_told_and_the_rest_is_sent(begun, remote):
    run = begun()
    run.keep("batch", body={"params": [{"key": "x" * 251, "value": ""}]})
    wandb.log({"loss": 1.0})
    run.finish()
    sender = send_spool(run, remote)
    assert len(sender.refused) == 1 and "params" in sender.refused[0]
    assert Point.objects.count() == 1


def test_a_wrong_token_keeps_everything_on_disk(begun, remote, wire):
    run = begun()
    wandb.log({"loss": 1.0})
    run.finish()
    wrong = Server("http://touchstone.test", "ts_wrong", transport=wire, sleep=lambda seconds: None)
    assert "The server does not accept the token." in send_spool(run, wrong).problem
    assert send_spool(run, remote).problem == "" and Point.objects.count() == 1


def test_a_token_that_may_only_read_loses_nothing(begun, remote, wire, team):
    reading = create_token(team.researcher, "reading", rights={"experiments": "read"})[1]
    run = begun()
    wandb.log({"loss": 1.0})
    run.finish()
    refused = send_spool(run, Server("http://touchstone.test", reading, transport=wire, sleep=lambda seconds: None))
    assert "experiments" in refused.problem and refused.refused == []
    assert send_spool(run, remote).problem == "" and Point.objects.count() == 1


def test_a_config_never_changes_once_it_was_sent(begun, remote, caplog):
    run = begun(config={"lr": 1})
    wandb.config.update({"lr": 2}, allow_val_change=True)  # before the first call of log
    with pytest.raises(wandb.UsageError, match="allow_val_change"):
        wandb.config.update(lr=3)
    wandb.log({"loss": 1.0})
    wandb.config.lr = 4
    run.finish()
    assert send_spool(run, remote).refused == []
    assert Run.objects.get().config == {"lr": "2"} and "config.lr stays 2" in caplog.text


def test_disabled_does_nothing_and_misuse_is_told(tmp_path):
    run = wandb.init(mode="disabled")
    wandb.log({"loss": 1.0})
    run.finish()
    assert not (tmp_path / "spool").exists() or not list((tmp_path / "spool").iterdir())
    with pytest.raises(wandb.UsageError):
        wandb.log({"loss": 1.0})
    with pytest.raises(wandb.UsageError):
        wandb.init(mode="somewhere")
    with pytest.raises(wandb.UsageError):
        wandb.Table(columns=["a"], data=[[1, 2]])


def test_an_answer_of_another_server_or_a_mistake_of_ours_loses_nothing(begun, remote, wire):
    run = begun()
    wandb.log({"loss": 1.0})
    run.finish()
    page = httpx.Response(404, headers={"content-type": "text/html"}, text="<html>")
    for answer in (
        page,
        httpx.Response(200, text="<html>"),
        httpx.Response(500, json={"error_code": "INTERNAL_ERROR"}),
    ):
        other = httpx.MockTransport(
            lambda _, answer=answer: httpx.Response(answer.status_code, content=answer.content, headers=answer.headers)
        )
        sender = send_spool(run, Server("http://elsewhere.test", "ts_x", transport=other, sleep=lambda seconds: None))
        assert sender.problem and sender.refused == [] and sender.run is None, answer
    assert send_spool(run, remote).problem == "" and Point.objects.count() == 1


def test_a_number_of_the_summary_is_kept(begun, remote):
    run = begun()
    for step in range(3):
        wandb.log({"loss": 3.0 - step})
    wandb.summary["accuracy"] = 0.75
    wandb.summary.update({"loss": 0.5, "best": {"step": 2}})
    run.finish()
    assert send_spool(run, remote).refused == []
    assert Run.objects.get().summary == {"loss": 1.0, "accuracy": 0.75, "best.step": 2}
    assert LoggedRun.objects.get().tags["summary.loss"] == "0.5", "it is not a point of the curve"


def test_a_full_disk_ends_no_program(begun, caplog, monkeypatch):
    run = begun()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run._spool, "add", full)
    for step in range(3):
        wandb.log({"loss": float(step)})
    assert caplog.text.count("No space left on device") == 1


@pytest.mark.parametrize(
    ("end", "state", "why"),
    [
        ("1 / 0", "failed", "ZeroDivisionError: division by zero (SCRIPT, line 5)"),
        ("with run:\n    raise ValueError('loss is\\n NaN')", "failed", "ValueError: loss is NaN (SCRIPT, line 6)"),
        ("sys.exit(3)", "failed", "The program ended with exit code 3"),
        ("sys.exit('no data')", "failed", "no data"),
        ("sys.exit(' ')", "failed", "The program ended with exit code 1"),
        ("sys.exit(0.0)", "failed", "0.0"),
        (
            "import threading\none = threading.Thread(target=sys.exit, args=(2,))\none.start()\none.join()",
            "finished",
            "",
        ),
        ("with run:\n    sys.exit(3)", "failed", "The program ended with exit code 3"),
        ("run.finish(exit_code=2)", "failed", "The program ended with exit code 2"),
        ("sys.exit()", "finished", ""),
        ("with run:\n    sys.exit(0)", "finished", ""),
        ("try:\n    sys.exit(2)\nexcept SystemExit:\n    wandb.log({'a': 2})", "finished", ""),
    ],
)
def test_a_run_says_how_its_program_ended(remote, tmp_path, end, state, why):
    script = tmp_path / "script.py"
    begin = "import sys\nimport touchstone.wandb as wandb\nrun = wandb.init(id='ended', mode='offline')\nwandb.log({'a': 1})\n"
    script.write_text(f"{begin}{end}\n")
    paths = {"PYTHONPATH": str(Path(wandb.__file__).parents[1])}
    subprocess.run([sys.executable, str(script)], env={**os.environ, **paths}, stderr=subprocess.DEVNULL)
    assert [(name, left) for name, left, _ in send_kept(remote)] == [("ended", 0)]
    run = Run.objects.get()
    assert (run.state, run.state_reason.replace(str(script), "SCRIPT")) == (state, why)


def test_what_is_wrong_is_said_while_the_program_runs(remote, wire, caplog, monkeypatch):
    monkeypatch.setattr("touchstone.spool.PAUSE_S", 0.01)
    run = wandb.init(server=Server("http://touchstone.test", "ts_wrong", transport=wire, sleep=lambda seconds: None))
    deadline = time.monotonic() + SECONDS
    while "everything waits" not in caplog.text and time.monotonic() < deadline:
        time.sleep(0.01)
    assert caplog.text.count("The server does not accept the token") == 1 and run.url is None


def test_the_package_loads_nothing_of_the_server():
    told = "import sys, touchstone.wandb; print([m for m in sys.modules if m.split('.')[0] in ('django', 'webapp', 'trainer', 'torch')])"
    found = subprocess.run([sys.executable, "-c", told], cwd="client", capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_spool_reads_only_whole_lines():
    spool = Spool.new("half")
    spool.add("nothing")
    spool.lines.open("a").write('{"do": "x"')
    assert [line["do"] for line in spool.after(0)] == ["nothing"]
