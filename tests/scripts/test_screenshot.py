"""The picture of the running product, where no product runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chromium import CHROMIUM, HOW_TO_GET_IT
from tests.stack import ROOT


@pytest.mark.skipif(CHROMIUM is None, reason=HOW_TO_GET_IT)
def test_without_a_running_product_it_says_how_to_start_one(tmp_path: Path):
    env = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "PUBLIC_URL")}
    env["TOUCHSTONE_VAR"] = str(tmp_path)
    command = [sys.executable, "-m", "scripts.screenshot"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "the database does not answer" in done.stderr and "make run" in done.stderr
    assert "Traceback" not in done.stderr
