"""The command, in one process with the server: the commands that people type, and their output."""

import json
import stat
from datetime import date
from decimal import Decimal

import httpx
import pytest
import touchstone.wandb as wandb
from touchstone import cli, terminal
from touchstone.plot import curve
from touchstone.server import Server
from touchstone.spool import send_kept

from tests.webapp.experiments.conftest import make_version
from trainer.contracts import jsonlines
from webapp.datasets.ingest import services as imports
from webapp.datasets.models import DatasetVersion, ImportJob
from webapp.experiments.models import ClaimStudy, Experiment, Run
from webapp.inference.folders import stored
from webapp.inference.models import RegisteredModel
from webapp.inference.serving import process
from webapp.usage.models import MonthlyUse
from webapp.weights.models import WeightsJob

pytestmark = pytest.mark.django_db


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


def test_what_needs_somebody_is_listed(run, logged):
    first, second = logged
    Run.objects.filter(pk=first).update(
        state="failed",
        state_reason="No memory.",
        experiment=Experiment.objects.create(workspace=Run.objects.get(pk=first).experiment.workspace, name="other"),
    )
    listed = run("needs")
    assert listed.exit_code == 0 and f"x “first” of other failed  /runs/{first}\n  No memory." in listed.output
    assert f"+ “second” of cli finished  /runs/{second}" in listed.output
    assert [line["tone"] for line in json.loads(run("needs", "--json").output)["now"]] == ["bad"]
    Run.objects.filter(pk=first).update(state="stopped")
    assert "Nothing needs attention." in run("needs").output


def test_runs_are_listed_shown_and_compared(run, logged):
    first, second = logged
    listed = run("runs", "list")
    assert listed.exit_code == 0 and "first" in listed.output and "finished" in listed.output
    rows = jsonlines.rows(run("runs", "list", "--json", "--limit", 1).output)
    assert [row["name"] for row in rows] == ["second"]
    shown = run("runs", "show", first)
    assert "cli / first" in shown.output and "lr: '0.001'" in shown.output
    compared = run("compare", first, second)
    assert compared.exit_code == 0 and "0.001" in compared.output and "0.0001" in compared.output


def test_a_name_with_brackets_is_shown_as_it_is(run, logged):
    Run.objects.filter(pk=logged[0]).update(name="first [/b]")
    compared = run("compare", *logged)
    assert compared.exit_code == 0 and "first [/b]" in compared.output


def test_a_metric_without_values_names_those_that_are_there(run, logged):
    listed = run("runs", "metrics", logged[0], "--key", "los", "--json")
    assert listed.exit_code == 0 and listed.stdout == ""
    assert f"Run {logged[0]} has no value of los. It has: loss" in listed.stderr
    drawn = run("runs", "curves", logged[0], "--key", "loss", "--key", "los")
    assert "loss  1 at step 4" in drawn.stdout and "has no value of los." in drawn.stderr


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
    assert missing.exit_code == 1 and "(GET /api/v1/runs/999999)" in missing.output
    plan = tmp_path / "run.yaml"
    plan.write_text("recipe: policy\ndataset: nothing\nconfig: {steps: 4}\n")
    refused = run("launch", plan)
    assert refused.exit_code == 1 and Run.objects.count() == 0
    plan.write_text("- a list")
    assert run("launch", plan).exit_code == 2
    plan.write_text("recipe: policy\nconfig: [4")
    broken = run("launch", plan)
    assert broken.exit_code == 2 and "run.yaml is not YAML in line 2: expected" in broken.output
    plan.write_text("recipe: policy\ndataset: nothing\nconfig: {stepz: 4, optim: {lr: fast}}\n")
    several = [line.strip() for line in run("launch", plan).output.splitlines()]
    assert several[0] == "The config cannot be used." and {line.partition(":")[0] for line in several[1:]} == {
        "stepz",
        "optim.lr",
        "dataset",
    }
    assert (
        run("launch", tmp_path / "none.yaml").output.strip() == f"{tmp_path / 'none.yaml'}: No such file or directory."
    )
    away = run("export", 1, 1, "-o", tmp_path / "none" / "x.jsonl")
    assert away.exit_code == 2 and away.output.strip() == f"{tmp_path / 'none'}: There is no such folder."
    body = run("api", "POST", "/runs", "{")
    assert body.exit_code == 2 and "The body is not JSON" in body.output


class AnotherProgram(httpx.BaseTransport):
    """Another program at the address."""

    def __init__(self, status: int, content: bytes, kind: str) -> None:
        self.status, self.content, self.kind = status, content, kind

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(self.status, content=self.content, headers={"Content-Type": self.kind})


@pytest.mark.parametrize(
    ("status", "content", "kind", "code", "words"),
    [
        (404, b"<html>Not found</html>", "text/html", 1, "answers with a page: is a Touchstone server there?"),
        (200, b"<html>Hello</html>", "text/html", 2, "does not answer with JSON. Is a Touchstone server there?"),
        (200, b'{"rows": []}', "application/json", 2, "The answer has no 'items'. Is a Touchstone server there"),
    ],
)
def test_another_program_at_the_address_is_told_without_a_traceback(
    run, monkeypatch, status, content, kind, code, words
):
    other = Server("http://x.test/api/v1/", "ts_x", transport=AnotherProgram(status, content, kind))
    monkeypatch.setattr(terminal, "server", lambda: other)
    answer = run("runs", "list")
    assert (answer.exit_code, words in answer.output, "<html>" in answer.output) == (code, True, False), answer.output
    assert other.address == "http://x.test", "the path of the API is not doubled"


def test_login_keeps_the_token_for_its_owner_alone(run, remote, monkeypatch, tmp_path):
    monkeypatch.setattr(
        cli,
        "Server",
        lambda address, token: Server(address, token, transport=remote.transport, sleep=lambda seconds: None),
    )
    answer = run("login", "--address", remote.address, "--token", remote.token)
    assert answer.exit_code == 0 and "rosa@example.org" in answer.output and remote.token not in answer.output
    kept = tmp_path / "account.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600 and json.loads(kept.read_text())["token"] == remote.token
    wrong = run("login", "--address", remote.address, "--token", "ts_wrong")
    assert wrong.exit_code == 1 and json.loads(kept.read_text())["token"] == remote.token
    assert "The server does not accept the token." in wrong.output


def test_sync_sends_what_was_left(run, remote, wire):
    with wandb.init(mode="offline", reinit=True) as begun:
        begun.log({"loss": 1.0})
    wire.away = lambda request: True
    waiting = run("sync")
    assert waiting.exit_code == 2 and "lines are not sent yet" in waiting.output
    wire.away = lambda request: False
    assert run("sync").exit_code == 0 and Run.objects.get().state == "finished"
    assert run("sync").output == ""


def test_curves_have_their_ends():
    lines = curve([(step, float(step)) for step in range(100)], 20, 3)
    assert lines[0].strip().startswith("99") and lines[-1].strip().startswith("0") and len(lines) == 3
    assert lines[0].endswith("█") and curve([], 20) == [] and len(curve([(1, 2.0)], 20)) == 6


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"key": "a", "prompt": "Name a colour."}\n{"key": "b", "prompt": "Name a fruit."}\n')
    return path


@pytest.fixture
def worker(remote, monkeypatch):
    """A worker that runs imports each time the command waits."""

    def work(seconds: float) -> None:
        for job in ImportJob.objects.filter(state="queued"):
            imports.run_import(job.pk)

    monkeypatch.setattr(remote, "sleep", work)


def test_a_file_is_imported_and_comes_out_again(run, worker, prompts, tmp_path):
    imported = run("import", prompts, "--name", "Colours")
    assert imported.exit_code == 0, imported.output
    told = json.loads(imported.output.splitlines()[-1])
    assert (told["dataset"], told["version"], told["counts"]["examples"]) == ("Colours", 1, 2)
    version = DatasetVersion.objects.get(dataset__name="Colours")
    out = tmp_path / "out.jsonl"
    assert run("export", version.dataset_id, 1, "-o", out).exit_code == 0
    assert [row["key"] for row in jsonlines.rows(out.read_text())] == ["a", "b"]
    printed = run("export", version.dataset_id, 1)
    assert printed.exit_code == 0 and printed.stdout_bytes == out.read_bytes()
    refused = run("export", version.dataset_id, 7, "-o", tmp_path / "none.jsonl")
    assert refused.exit_code == 1 and not list(tmp_path.glob("none*"))


def test_an_import_is_followed_later_by_its_number(run, worker, prompts, tmp_path):
    number = int(run("import", prompts, "--name", "Colours", "--no-wait").output)
    assert json.loads(run("imports", "show", number, "--json").output)["state"] == "queued"
    waited = run("imports", "wait", number)
    assert waited.exit_code == 0 and json.loads(waited.output)["counts"]["examples"] == 2, waited.output
    assert "finished · version 1" in run("imports", "show", number).output
    assert [row["id"] for row in jsonlines.rows(run("imports", "list", "--json").output)] == [number]
    assert run("imports", "cancel", number).exit_code == 1, "it is over"
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"key": "a", "prompt": "Hi"}\n' + '{"key": "b"}\n' * 15)
    number = int(run("import", bad, "--no-wait").output)
    failed = run("imports", "wait", number)
    assert failed.exit_code == 2 and "nothing was imported" in failed.stderr and failed.stdout == ""
    shown = run("imports", "show", number)
    assert (
        shown.exit_code == 0
        and "failed" in shown.output
        and f"and 5 more; touchstone imports show {number}" in shown.stderr
    )
    waiting = int(run("import", prompts, "--name", "Never", "--no-wait").output)
    assert "cancelled" in run("imports", "cancel", waiting).output
    assert run("imports", "show", 999_999).exit_code == 1


def test_a_project_is_started_shown_and_paused(run, worker, prompts, tmp_path):
    assert run("import", prompts, "--name", "Colours").exit_code == 0
    plan = tmp_path / "project.yaml"
    plan.write_text("{name: Which is better, kind: rubric, dataset: Colours}")
    project = int(run("projects", "start", plan).output)
    assert "rubric · " in run("projects", "show", project).output
    assert json.loads(run("projects", "show", project, "--json").output)["status"]["progress"]["complete"] == 0
    assert "paused" in run("projects", "set", project, "paused").output
    assert "Which is better" in run("projects", "list").output
    answers = run("projects", "answers", project, "-o", tmp_path / "answers.jsonl")
    assert answers.exit_code == 0 and (tmp_path / "answers.jsonl").read_text() == ""
    assert run("projects", "set", project, "elsewhere").exit_code == 2


def test_an_import_says_which_lines_are_wrong_and_what_is_left_out(run, worker, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"key": "a", "prompt": "Hi"}\n{"key": "b"}\n')
    refused = run("import", bad)
    assert refused.exit_code == 2 and '"line": 2' in refused.output and "nothing was imported" in refused.output
    kept = run("import", bad, "--keep-good")
    assert kept.exit_code == 0 and json.loads(kept.output.splitlines()[-1])["counts"]["examples"] == 1
    log = tmp_path / "items.jsonl"
    log.write_text(json.dumps({"object": "eval.run.output_item", "id": "o1", "datasource_item": {"input": "Hi"}, "results": [{"score": 1}], "sample": {}}) + "\n")  # fmt: skip
    told = run("import", log)
    assert told.exit_code == 0 and "left out in 1 rows: the graders of the run" in told.output
    assert run("import", tmp_path / "nowhere.jsonl").exit_code == 2


def test_a_run_is_launched_once_by_its_key_stopped_and_resumed(run, team, tmp_path, remote):
    make_version(team.researcher, name="Demo prompts")
    RegisteredModel.objects.create(workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/m")
    plan = tmp_path / "run.yaml"
    plan.write_text("recipe: policy\ndataset: Demo prompts\nconfig: {steps: 4, optim: {lr: 2.0e-4}}\n")
    first, again = run("launch", plan, "--key", "monday"), run("launch", plan, "--key", "monday")
    assert first.exit_code == again.exit_code == 0 and first.output == again.output
    row = Run.objects.get(pk=int(first.output))
    assert (row.config["steps"], row.config["optim"]["lr"]) == (4, 2e-4)
    stopped = run("runs", "stop", row.pk)
    row.refresh_from_db()
    assert stopped.exit_code == 0 and row.state == "stopped" and "stopped" in stopped.output
    assert run("runs", "resume", row.pk).exit_code == 0
    assert run("runs", "resume", row.pk).exit_code == 1
    asked = run("api", "get", f"/runs/{row.pk}")
    assert json.loads(asked.output)["state"] == "queued"
    assert run("api", "POST", "/runs", "{").exit_code == 2 and run("api", "GET", "/nothing").exit_code == 1


def test_a_check_is_that_of_the_launch(run, team, tmp_path):
    """The model beside the config counts, and a key that a launch would refuse does not pass."""
    make_version(team.researcher, name="Demo prompts")
    RegisteredModel.objects.create(workspace=team.workspace, name="tiny", source="local", path="/m")
    plan = tmp_path / "run.yaml"
    plan.write_text("recipe: policy\ndataset: Demo prompts\nmodel: tiny\nname: first\nconfig: {steps: 4}\n")
    good = run("launch", plan, "--check")
    assert good.exit_code == 0 and "name: tiny" in good.stdout, good.output
    plan.write_text("recipe: policy\nmodel: small\nconfig: {steps: 4}\n")
    assert "name: small" in run("launch", plan, "--check").stdout
    plan.write_text("recipe: policy\ndatset: Demo prompts\nconfig: {steps: 4}\n")
    wrong = run("launch", plan, "--check")
    assert wrong.exit_code == 1 and "datset: unknown key" in wrong.output
    plan.write_text("dataset: Demo prompts\n")
    assert "The file names no recipe" in run("launch", plan, "--check").output
    assert not Run.objects.exists()


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
def test_a_model_answers_as_it_writes(run, team, monkeypatch):
    async def answers(*asked):
        yield {"event": "loading"}
        for text in ("Red, ", "green: ", "ü"):
            yield {"event": "token", "text": text, "token": 1}
        if "fails" in str(asked[2]):
            yield {"event": "error", "code": "memory", "message": "The model does not fit."}
        else:
            yield {"event": "done", "text": "Red, green: ü", "tokens": [1, 1, 1]}

    monkeypatch.setattr(process, "answers", answers)
    monkeypatch.setattr(stored, "missing_folder", lambda model: "")
    model = RegisteredModel.objects.create(workspace=team.workspace, name="small", source="local", path="/m")
    told = run("generate", model.pk, "Name two colours.")
    assert told.exit_code == 0 and told.output == "Red, green: ü\n"
    failed = run("generate", model.pk, "This fails.")
    assert failed.exit_code == 2 and "does not fit" in failed.output
    assert run("generate", 999_999, "Hi").exit_code == 1


def test_a_claim_is_started_with_its_own_task_and_shown(run, team, tmp_path):
    assert "rationale" in run("claims", "list").output
    settings = tmp_path / "settings.yaml"
    settings.write_text("{steps: 4, reward: {matcher: words}, data: {form: lines}}")
    started = run("claims", "start", "rationale", "--seeds", 2, "--config", settings, "--key", "k")
    assert started.exit_code == 0, started.output
    study, job = ClaimStudy.objects.get(), WeightsJob.objects.get()
    assert started.output.strip() == str(study.pk) and study.asked["seeds"] == 2 and study.asked["config"]["steps"] == 4
    again = run("claims", "start", "rationale", "--seeds", 2, "--config", settings, "--key", "k")
    assert again.output == started.output
    shown = run("claims", "show", study.pk).output
    assert "0 of 4 runs" in shown and f"job {job.pk} · queued" in shown
    assert json.loads(run("claims", "show", study.pk, "--json").output)["state"] == "waiting"
    refused = run("claims", "start", "rationale", "--model", "m")
    assert refused.exit_code == 1 and "also name the data" in refused.output


def test_costs_are_a_table_or_lines_of_json(run, team):
    for number, unpriced in ((1, 0), (2, 2)):
        MonthlyUse.objects.create(
            workspace=team.workspace, month=date(2026, 3, 1), kind="evaluation", work=number, calls=2, prompt_tokens=1000,
            money=Decimal("1.5"), unpriced=unpriced,
        )  # fmt: skip
    shown = run("costs", "--by", "run", "--sort", "money")
    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.output.splitlines()]
    assert lines[1] == ["Evaluation", "1,", "deleted", "–", "–", "1,000", "1.50", "–"]
    assert lines[2] == ["Evaluation", "2,", "deleted", "–", "–", "1,000", "–", "+2?", "–"]
    rows = jsonlines.rows(run("costs", "--by", "run", "--month", "2026-03", "--limit", 1, "--json").output)
    assert [row["tokens"] for row in rows] == [{"value": 1000.0, "unknown": 0}]
    assert run("costs", "--month", "2026-04").output.splitlines()[1:] == []
    refused = run("costs", "--by", "colour")
    assert refused.exit_code == 1


def test_recipes_are_listed_and_shown_with_their_presets(run):
    listed = run("recipes")
    assert listed.exit_code == 0 and "policy" in listed.output and "quick, ruscarl" in listed.output
    shown = run("recipes", "dpo")
    assert "rubric_arm: As in the paper: Rubric-ARM." in shown.output and "batch_size: 64" in shown.output
    [row] = jsonlines.rows(run("recipes", "dpo", "--json").output)
    assert [preset["name"] for preset in row["presets"]] == ["quick", "rubric_arm", "small"]
    assert run("recipes", "none").exit_code != 0
