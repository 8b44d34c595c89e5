"""The README's picture is taken if there is a run to show. Otherwise the command says what to do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import screenshot
from tests.e2e.seed import seed_run
from tests.stack import ROOT
from tests.timeouts import SECONDS
from tests.webapp.experiments.conftest import make_version
from webapp.accounts.sign_in.services import create_sign_in_link
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launch_services
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.browser
NAME = json.loads((ROOT / "demo" / "run.json").read_text())["name"]


@pytest.fixture
def link(server, team) -> str:
    return f"{server.url}/sign-in/link/{create_sign_in_link(team.owner.user)}"


@pytest.fixture
def page(chromium):
    page = chromium.new_page(viewport=screenshot.SIZE)
    page.set_default_timeout(SECONDS * 1000)
    yield page
    page.close()


def launch(team):
    RegisteredModel.objects.create(workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/m")
    dataset = checks.DatasetChoice(id=make_version(team.owner).dataset_id)
    return launch_services.launch(team.owner, recipe="policy", config={}, dataset=dataset, name=NAME)


def test_the_demo_run_is_taken_in_the_promised_size(team, link, page, monkeypatch, tmp_path):
    seed_run(launch(team), steps=30)
    monkeypatch.setattr(screenshot, "PICTURE", tmp_path / "images" / "run.png")
    screenshot.take(page, link)
    header = screenshot.PICTURE.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(header[16:20]), int.from_bytes(header[20:24])) == (1440, 900)


def test_a_run_without_points_is_no_picture_yet(team, link, page):
    launch(team)
    with pytest.raises(SystemExit, match="no points yet"):
        screenshot.take(page, link)


def test_without_a_running_product_it_says_how_to_start_one(chromium, tmp_path: Path):
    env = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "PUBLIC_URL")}
    env["TOUCHSTONE_VAR"] = str(tmp_path)
    command = [sys.executable, "-m", "scripts.screenshot"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "the database does not answer" in done.stderr and "make run" in done.stderr
    assert "Traceback" not in done.stderr
