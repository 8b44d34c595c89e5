"""Every example of docs/api.md, in its order and unchanged, against a real server: curl, Python and the command.

Only two things differ: the server's address, and the folder of the model. Numbers of runs and imports come out as on
the page because the sequences of an empty database are set so.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from socket import AF_INET, SOCK_STREAM

import pytest
from django.core.management import call_command
from django.db import connection

from tests.e2e.live import Process, Server
from tests.e2e.seed import seed_run
from tests.patience import SECONDS
from tests.webapp.experiments.conftest import make_version
from webapp.accounts.models import User
from webapp.celery import app
from webapp.core import destinations, tasks
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launching
from webapp.experiments.models import Run
from webapp.experiments.outputs import artifacts
from webapp.inference.models import RegisteredModel

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "api.md"
ADDRESS, FOLDER = "http://127.0.0.1:8000", "/models/my-model"
TOKEN = re.compile(r"\$?\(?\.venv/bin/python manage\.py (token [^)\n]*)\)?")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$|((?:^    \S[^\n]*\n(?:^    [^\n]*\n)*\n?)+)", re.DOTALL | re.MULTILINE)


def blocks() -> list[tuple[str, str]]:
    """(kind, text) of all code blocks of the page. The kind is `python`, `yaml` or `shell`, or `json` for output that is only shown."""
    found = []
    for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        text = match[2] or re.sub(r"^    ", "", match[3], flags=re.MULTILINE)
        kind = match[1] or ("json" if text.startswith("{") else "shell")
        found.append((kind, text))
    return found


def test_each_kind_of_example_is_there():
    kinds = [kind for kind, _ in blocks()]
    shell = "\n".join(text for kind, text in blocks() if kind == "shell")
    assert kinds.count("python") >= 7 and kinds.count("yaml") == 1
    for command in (
        "import",
        "export",
        "launch",
        "compare",
        "download",
        "api",
        "runs list",
        "runs show",
        "runs follow",
        "runs stop",
    ):
        assert f"touchstone {command} " in shell, command
    assert shell.count("api $base") + shell.count('api "$base') > 20


@pytest.fixture
def live(transactional_db, settings, monkeypatch):
    """The server, and a worker that runs imports at once and nothing else. Launched runs wait."""
    import workers.imports  # noqa: F401  registers its tasks

    def send(name: str, args: tuple) -> None:
        if name.startswith("workers.imports."):
            app.tasks[name].apply(args=args, throw=True)

    monkeypatch.setattr(tasks, "_send", send)
    found = Server()
    found.start()
    settings.PUBLIC_URL = settings.INTERNAL_URL = found.url
    yield found
    found.stop()


@pytest.fixture
def runs(cast, settings) -> dict[int, Run]:
    """Runs 7 (under way), 8 (stopped) and 9 (finished) of the demo's owner, with what they have logged."""
    settings.MAX_RUNNING_RUNS = 1  # the launched runs wait, because nothing trains here
    User.objects.filter(pk=cast.owner.user_id).update(email="demo@localhost")
    for table in ("datasets_dataset", "datasets_importjob", "webhooks_webhook"):
        numbered(table, 1)
    version = make_version(cast.owner, name="Demo prompts")
    RegisteredModel.objects.create(
        workspace=cast.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )
    numbered("experiments_run", 7)
    made = {}
    for number, state in ((7, "running"), (8, "stopped"), (9, "finished")):
        choice = checks.DatasetChoice(id=version.dataset_id)
        config = {"steps": 60, "optim": {"lr": 1e-4 * number}}
        run = launching.launch(cast.owner, recipe="policy", config=config, dataset=choice, name=f"run {number}")
        made[number] = seed_run(run, steps=40, state=state)
    assert list(made) == [run.pk for run in made.values()]
    kept = artifacts.folder(9) / "checkpoints" / "step-000040"
    kept.mkdir(parents=True)
    (kept / "state.json").write_text('{"step": 40}')
    return made


def numbered(table: str, number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {number}, false)")


@pytest.fixture
def place(tmp_path, monkeypatch, live, cast, runs) -> Path:
    """The folder in which the examples run, with the files that they use. A host name stands for a public address."""
    from trainer.inference.models import make_tiny

    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    folder = tmp_path / "home"
    folder.mkdir()
    make_tiny(folder / "my-model")
    lines = '{"key": "a", "prompt": "Name a colour."}\n{"key": "b", "prompt": "Name a fruit."}\n'
    (folder / "prompts.jsonl").write_text(lines)
    programs = folder / "bin"
    programs.mkdir()
    command = programs / "touchstone"
    command.write_text(f"#!{sys.executable}\nfrom touchstone.cli import app\napp()\n")
    command.chmod(0o755)
    if shutil.which("uuidgen") is None:
        (programs / "uuidgen").write_text(f"#!{sys.executable}\nfrom uuid import uuid4\nprint(uuid4())\n")
        (programs / "uuidgen").chmod(0o755)
    monkeypatch.setattr(
        destinations, "getaddrinfo", lambda *_, **__: [(AF_INET, SOCK_STREAM, 6, "", ("93.184.215.14", 443))]
    )
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "client"))
    monkeypatch.setenv("TOUCHSTONE_CONFIG", str(folder / "account.json"))
    return folder


def token(words: str, capsys) -> str:
    """The output of `manage.py token ...`. It runs in this process, because another process would use another database."""
    capsys.readouterr()
    call_command(*words.split())
    return capsys.readouterr().out.strip()


def test_every_example_of_the_page_works(place, live, runs, capsys, monkeypatch):
    here: dict[str, object] = {}
    before, failed = "", []  # the variables and functions that the shell keeps
    for kind, text in blocks():
        text = text.replace(ADDRESS, live.url).replace(FOLDER, str(place / "my-model"))
        text = TOKEN.sub(lambda found: token(found[1], capsys), text)
        if kind == "yaml":
            (place / "run.yaml").write_text(text)
        elif kind == "python":
            if "follow(7)" in text:
                ends(runs[7], live.url)
            failed += interpreted(text, here)
        elif "api()" in text:
            before = text
            for name, value in re.findall(
                r"^export (\w+)=(\S+)$", text.replace("$TOUCHSTONE_URL", live.url), re.MULTILINE
            ):
                monkeypatch.setenv(name, value)
        elif kind == "shell" and not text.startswith((".venv", "claude ", "ts_")):
            failed += [why for line in commands(text) if (why := carried_out(before, line))]
    assert not failed, "\n\n".join(failed)
    assert Run.objects.filter(config__steps=40).count() == 3  # with curl, with Python, and with the command and a key


def commands(text: str) -> list[str]:
    """The commands of a block. A command of several lines becomes one."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def interpreted(text: str, here: dict[str, object]) -> list[str]:
    try:
        exec(compile(text, "docs/api.md", "exec"), here)  # noqa: S102  our own page
    except Exception as error:
        return [f"{text}\n-> {type(error).__name__}: {error}"]
    return []


def ends(run: Run, address: str) -> None:
    """Lets the process of the run report its end after somebody has begun to listen."""
    Run.objects.filter(pk=run.pk).update(state="running", ray_job_id=f"run-{run.pk}-1", next_try_at=None)
    process = Process(address, Run.objects.get(pk=run.pk))
    done = process.event("state", state="finished")
    threading.Timer(3.0, lambda: process.post(done)).start()


def carried_out(before: str, line: str) -> str:
    """The reason why the command did not work, or "" if it did."""
    asked = ["bash", "-euo", "pipefail", "-c", f"{before}\n{line}"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"{line}\n-> nothing within {SECONDS} s"
    return "" if done.returncode == 0 else f"{line}\n-> {done.returncode} {done.stdout[-800:]}{done.stderr[-800:]}"
