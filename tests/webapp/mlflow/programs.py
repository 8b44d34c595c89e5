"""Programs in separate processes that log to Touchstone by MLflow's own client, because of MLFLOW_TRACKING_URI alone."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import overlay
from tests.e2e.live import Server
from webapp.accounts.models import Membership
from webapp.accounts.tokens.services import create_token

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def program(server: Server, tmp_path: Path) -> Start:
    """`program(text, membership)` starts a program with an address and a token, and without our code. Keywords are more variables of its
    environment."""

    packages = str(overlay.folder(overlay.MLFLOW))

    def start(text: str, membership: Membership, **more: str) -> subprocess.Popen[str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DJANGO", "DATABASE", "TOUCHSTONE"))
        }
        secret = create_token(membership, "program")[1]
        told = {"MLFLOW_TRACKING_URI": f"{server.url}/mlflow", "MLFLOW_TRACKING_TOKEN": secret}
        quick = {
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
            "HF_HUB_OFFLINE": "1",
            "GIT_PYTHON_REFRESH": "quiet",
            "HOME": str(tmp_path),
            "PYTHONPATH": packages,
        }
        script = Path(tmp_path) / "program.py"
        script.write_text(textwrap.dedent(text))
        return subprocess.Popen(
            [sys.executable, str(script)], cwd=tmp_path, env=kept | told | quick | more, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )  # fmt: skip

    return start


def ended(process: subprocess.Popen[str]) -> None:
    said, _ = process.communicate(timeout=500)
    assert process.returncode == 0, said[-4_000:]
