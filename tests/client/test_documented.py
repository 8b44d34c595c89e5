"""Every example of docs/api.md, in its order and unchanged, against a real server: curl, Python and the command.

Only two things differ: the server's address, and the folder of the model. Numbers of runs and imports come out as on
the page because the sequences of an empty database are set so. Before each block, the runs are again as at the
beginning, because a run stops only once. The server notes which operations each language asks for.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from socket import AF_INET, SOCK_STREAM
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.urls import resolve
from touchstone import cli
from typer.testing import CliRunner

from tests.connection_pool import shared_connections
from tests.e2e.live import Process, Server
from tests.e2e.seed import seed_run
from tests.e2e.workbench import make_project
from tests.timeouts import SECONDS
from tests.webapp.experiments.conftest import make_version
from webapp.accounts.models import User
from webapp.celery import app
from webapp.core import tasks
from webapp.core.network import destinations
from webapp.core.requests.handler import ThreadedHandler
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launching
from webapp.experiments.models import Rollout, Run
from webapp.experiments.outputs import artifacts
from webapp.inference.models import RegisteredModel

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "api.md"
ADDRESS, FOLDER = "http://127.0.0.1:8000", "/models/my-model"
VERDICT = '{"judge": "strict", "pair": "p17", "group": "math", "label": "A", "given": "A", "swapped": "B"}\n'
TOKEN = re.compile(r"\$?\(?\.venv/bin/python manage\.py (token [^)\n]*)\)?")
BLOCK = re.compile(
    r"^## ([^\n]+)$|^```(\w+)\n(.*?)^```$|((?:^    \S[^\n]*\n(?:^    [^\n]*\n)*\n?)+)", re.DOTALL | re.MULTILINE
)
LANGUAGES = ("curl", "python", "command")


def blocks() -> list[tuple[str, str, str]]:
    """(section, kind, text) of all code blocks of the page. The kind is `python`, `yaml` or `shell`, or `json` for output that is only
    shown."""
    found, section = [], ""
    for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        if match[1]:
            section = match[1]
            continue
        text = match[3] or re.sub(r"^    ", "", match[4], flags=re.MULTILINE)
        found.append((section, match[2] or ("json" if text.startswith("{") else "shell"), text))
    return found


class Asked:
    """Which operations of the API were asked for: {(section, language): {"POST runs/<int:run_id>/stop"}}."""

    def __init__(self) -> None:
        self.now = ("", "")
        self.operations: dict[tuple[str, str], set[str]] = defaultdict(set)

    def note(self, scope: Mapping[str, Any]) -> None:
        if scope["path"].startswith("/api/v1/"):
            self.operations[self.now].add(f"{scope['method']} {resolve(scope['path']).route}")

    def lacking(self) -> list[str]:
        """The operations that curl asks for in a section and another language does not."""
        return [
            f"{section}: {operation} with {language}"
            for (section, shown), operations in self.operations.items()
            for language in LANGUAGES[1:]
            for operation in sorted(operations - self.operations.get((section, language), set()))
            if shown == "curl"
        ]


@pytest.fixture
def sent_requests(monkeypatch):
    noted, handle = Asked(), ThreadedHandler.handle

    def noting(self, scope, receive, send):
        noted.note(scope)
        return handle(self, scope, receive, send)

    monkeypatch.setattr(ThreadedHandler, "handle", noting)
    return noted


@pytest.fixture
def live(transactional_db, settings, monkeypatch):
    """The server, and a worker that runs imports, evaluations and sweeps at once and nothing else. Launched runs wait."""
    import workers.evaluation
    import workers.imports
    import workers.sweeps  # noqa: F401  registers their tasks

    def send(name: str, args: tuple) -> None:
        if name.startswith(("workers.imports.", "workers.evaluation.", "workers.sweeps.")):
            app.tasks[name].apply(args=args, throw=True)

    monkeypatch.setattr(tasks, "_send", send)
    found = Server()
    with shared_connections():
        found.start()
        settings.PUBLIC_URL = settings.INTERNAL_URL = found.url
        yield found
        found.stop()


@pytest.fixture
def runs(team, settings) -> dict[int, Run]:
    """Runs 7 (under way), 8 (stopped) and 9 (finished) of the demo's owner, with what they have logged."""
    settings.MAX_RUNNING_RUNS = 1  # the launched runs wait, because nothing trains here
    User.objects.filter(pk=team.owner.user_id).update(email="demo@localhost")
    for table in (
        "datasets_dataset",
        "datasets_importjob",
        "evaluation_evaluation",
        "evaluation_recording",
        "experiments_sweep",
        "annotation_project",
        "annotation_assignment",
        "webhooks_webhook",
    ):
        numbered(table, 1)
    make_project(team.owner, tasks=9)
    version = make_version(team.owner, name="Demo prompts", train=16)
    RegisteredModel.objects.create(
        workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )
    numbered("experiments_run", 7)
    made = {}
    for number, state in ((7, "running"), (8, "stopped"), (9, "finished")):
        choice = checks.DatasetChoice(id=version.dataset_id)
        config = {"steps": 60, "optim": {"lr": 1e-4 * number}}
        run = launching.launch(team.owner, recipe="policy", config=config, dataset=choice, name=f"run {number}")
        made[number] = seed_run(run, steps=40, state=state)
    for group in range(4):
        Rollout.objects.filter(group=group).update(example_key=f"e{12 + group}")
    assert list(made) == [run.pk for run in made.values()]
    kept = artifacts.folder(9) / "checkpoints" / "step-000040"
    kept.mkdir(parents=True)
    (kept / "state.json").write_text('{"step": 40}')
    return made


def numbered(table: str, number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {number}, false)")


@pytest.fixture
def place(tmp_path, monkeypatch, live, team, runs) -> Path:
    """The folder in which the examples run, with the files that they use. A host name stands for a public address."""
    from trainer.inference.models import make_tiny

    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    folder = tmp_path / "home"
    folder.mkdir()
    make_tiny(folder / "my-model")
    lines = '{"key": "a", "prompt": "Name a colour."}\n{"key": "b", "prompt": "Name a fruit."}\n'
    (folder / "prompts.jsonl").write_text(lines)
    (folder / "verdicts.jsonl").write_text(VERDICT)
    programs = folder / "bin"
    programs.mkdir()
    if shutil.which("uuidgen") is None:
        (programs / "uuidgen").write_text(f"#!{sys.executable}\nfrom uuid import uuid4\nprint(uuid4())\n")
        (programs / "uuidgen").chmod(0o755)
    monkeypatch.setattr(
        destinations, "getaddrinfo", lambda *_, **__: [(AF_INET, SOCK_STREAM, 6, "", ("93.184.215.14", 443))]
    )
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TOUCHSTONE_CONFIG", str(folder / "account.json"))
    return folder


def token(words: str, capsys) -> str:
    """The output of `manage.py token ...`. It runs in this process, because another process would use another database."""
    capsys.readouterr()
    call_command(*words.split())
    return capsys.readouterr().out.strip()


def test_every_example_of_the_page_works(place, live, runs, sent_requests, capsys, monkeypatch):
    here: dict[str, object] = {}
    before, failed = "", []  # the variables and functions that the shell keeps
    for section, kind, text in blocks():
        text = text.replace(ADDRESS, live.url).replace(FOLDER, str(place / "my-model"))
        text = TOKEN.sub(lambda found: token(found[1], capsys), text)
        sent_requests.now = (section, kind)
        if kind == "yaml":
            (place / re.match(r"# (\S+)", text)[1]).write_text(text)
        elif kind == "python":
            as_they_were(runs)
            with ends(runs[7], live.url) if "follow(7)" in text else nullcontext():
                failed += interpreted(text, here)
        elif "api()" in text:
            before = text
            for name, value in re.findall(
                r"^export (\w+)=(\S+)$", text.replace("$TOUCHSTONE_URL", live.url), re.MULTILINE
            ):
                monkeypatch.setenv(name, value)
        elif kind == "shell" and not text.startswith((".venv", "claude ", "ts_")):
            as_they_were(runs)
            for line in commands(text):
                sent_requests.now = (section, "command" if line.startswith("touchstone ") else "curl")
                with ends(runs[7], live.url) if "feed" in line or "follow 7" in line else nullcontext():
                    failed += carried_out(before, line)
    assert not failed, "\n\n".join(failed)
    assert not sent_requests.lacking(), "\n".join(sent_requests.lacking())
    shown = {section for section, language in sent_requests.operations if language == "curl"}
    assert len(shown) >= 8 and sum(map(len, sent_requests.operations.values())) > 100
    assert (
        Run.objects.filter(config__steps=40).count() == 4
    )  # with curl, Python, the command and its key, and its draft


def as_they_were(runs: dict[int, Run]) -> None:
    """The runs of the page with the states, limits and configs with which the page begins."""
    for run in runs.values():
        run.save()


def commands(text: str) -> list[str]:
    """The commands of a block. A command of several lines becomes one."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def interpreted(text: str, here: dict[str, object]) -> list[str]:
    try:
        exec(compile(text, "docs/api.md", "exec"), here)  # noqa: S102  our own page
    except Exception as error:
        return [f"{text}\n-> {type(error).__name__}: {error}"]
    return []


@contextmanager
def ends(run: Run, address: str) -> Iterator[None]:
    """Lets the process of the run report its end after somebody has begun to listen. It has reported before the next example, while the server
    is there."""
    Run.objects.filter(pk=run.pk).update(state="running", ray_job_id=f"run-{run.pk}-1", next_try_at=None)
    process = Process(address, Run.objects.get(pk=run.pk))
    done = process.event("state", state="finished")
    timer = threading.Timer(1.5, lambda: process.post(done))
    timer.start()
    try:
        yield
    finally:
        timer.join()


def carried_out(before: str, line: str) -> list[str]:
    """The reason why the command did not work; nothing if it did. Ours runs in this process, because a process for each takes longer."""
    if line.startswith("touchstone "):
        told = CliRunner().invoke(cli.app, shlex.split(line)[1:])
        return [f"{line}\n-> {told.exit_code} {told.output[-1600:]} {told.exception!r}"] if told.exit_code else []
    given = ["bash", "-euo", "pipefail", "-c", f"{before}\n{line}"]
    try:
        done = subprocess.run(given, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return [f"{line}\n-> nothing within {SECONDS} s"]
    return [f"{line}\n-> {done.returncode} {done.stdout[-800:]}{done.stderr[-800:]}"] if done.returncode else []
