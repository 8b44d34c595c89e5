"""The environment of the application: files, images, networks, sockets, and the tokens of runs."""

import ast
import os
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from fnmatch import fnmatch
from pathlib import Path

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.routing import URLRouter
from django.conf import settings
from django.utils import timezone

from webapp.core.network.destinations import Fence
from webapp.experiments.lifecycle import tokens
from webapp.urls import websocket_urlpatterns

ROOT = Path(settings.BASE_DIR)
AS_ROOT = os.geteuid() == 0


def kept_out(path: str) -> bool:
    """Whether .dockerignore keeps this file out of an image. The last line that matches decides."""
    out = False
    for line in (ROOT / ".dockerignore").read_text().split():
        pattern = line.removeprefix("!")
        names = [path, *(str(parent) for parent in Path(path).parents)]
        short = pattern.removeprefix("**/")
        fits = any(fnmatch(name, short) or (short != pattern and fnmatch(Path(name).name, short)) for name in names)
        out = not line.startswith("!") if fits else out
    return out


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "docker/.env",
        "docker/.env.production",
        "docker/ray_token",
        "docker/secrets/metrics_token",
        "var/secret_key",
    ],
)
def test_no_secret_gets_into_an_image(path):
    assert kept_out(path)


@pytest.mark.parametrize(
    "path", ["manage.py", "docker/web.Dockerfile", ".env.example", "webapp/environment.py", "webapp/settings.py"]
)
def test_what_an_image_needs_gets_in(path):
    assert not kept_out(path)


def test_what_is_written_at_run_time_is_its_users_alone(tmp_path):
    program = (
        "from pathlib import Path; from webapp.machine.places import close_to_others\n"
        f"var = Path({str(tmp_path / 'var')!r}); close_to_others(var)\n"
        "(var / 'uploads').mkdir(); (var / 'uploads' / 'answers.jsonl').write_text('{}')"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
    var = tmp_path / "var"
    assert stat.S_IMODE(var.stat().st_mode) == (0o711 if AS_ROOT else 0o700)
    assert stat.S_IMODE((var / "uploads" / "answers.jsonl").stat().st_mode) == 0o600
    assert not (var / "uploads").stat().st_mode & 0o066


@pytest.mark.parametrize("address", ["fec0::1", "192.0.0.192", "192.0.0.8", "169.254.169.254", "::ffff:10.0.0.1"])
def test_the_fence_is_closed_on_every_release_of_python(address):
    assert "not public" in Fence((), "ENDPOINT_NETWORKS").closed(address, "https")


@pytest.mark.django_db
async def test_a_websocket_to_nowhere_is_refused_without_a_failure(caplog):
    asked = {"type": "websocket", "path": "/ws/nothing", "headers": [], "subprotocols": []}
    socket = ApplicationCommunicator(URLRouter(websocket_urlpatterns), asked)
    await socket.send_input({"type": "websocket.connect"})
    answer = await socket.receive_output()
    assert (answer["type"], answer["code"]) == ("websocket.close", 4404)
    await socket.send_input({"type": "websocket.disconnect", "code": 4404})
    await socket.wait()
    assert not caplog.records


def test_a_runs_token_opens_nothing_for_long_after_its_end(run):
    token = tokens.run_token(run)
    assert tokens.is_current_token(token, run)
    run.ended_at = timezone.now() - timedelta(minutes=1)
    assert tokens.is_current_token(token, run), "what was not sent yet is still taken"
    run.ended_at = timezone.now() - tokens.GRACE - timedelta(seconds=1)
    assert not tokens.is_current_token(token, run)


def test_what_we_start_does_not_learn_the_keys_of_the_server(monkeypatch, tmp_path):
    """Ray's jobs run functions of people, and inherit the variables of the head."""
    from webapp.core.background.children import environment
    from webapp.environment import Environment
    from webapp.localstack.processes import Child
    from webapp.localstack.ray import RayHead

    for name in ("SECRET_KEY", "DATABASE_URL", "mail_url"):
        monkeypatch.setenv(name, "ours")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    ours = {name.upper() for name in Environment.model_fields if not name.startswith("touchstone_")}
    assert not ours & {name.upper() for name in environment()} and environment()["OMP_NUM_THREADS"] == "3"
    command = RayHead(tmp_path).command()
    child = Child(replace(command, args=["env"]), tmp_path / "env.log")
    child.process.wait()
    told = {line.partition("=")[0].upper() for line in child.output(100_000).splitlines()}
    assert "RAY_AUTH_MODE" in told and not ours & told


def test_every_process_that_we_start_says_what_it_may_know():
    """A child without `env=` would inherit the keys."""
    silent = []
    for path in [*(ROOT / "webapp").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "subprocess" in text else ():
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            starts = name.endswith(("subprocess.Popen", "subprocess.run", "create_subprocess_exec"))
            if starts and not {"env"} & {each.arg for each in node.keywords}:
                silent.append(str(path.relative_to(ROOT)))
    # our own manage.py, which needs the keys, and initdb of the database
    assert sorted(silent) == ["webapp/localstack/management/commands/up.py", "webapp/localstack/postgres.py"]


def test_the_function_of_a_package_gets_no_key_of_its_run(monkeypatch):
    from trainer.reward_process import ALLOWED
    from trainer.rewards import functions

    for name in functions.KEYS:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv(ALLOWED, "mine")
    assert not functions.KEYS & set(functions._environment())
    assert functions._environment()[ALLOWED] == "mine"
