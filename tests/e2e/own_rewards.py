"""A user's own rewards, made from the code in docs/rewards.md."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.stack import ROOT
from tests.timeouts import SECONDS


def blocks(language: str) -> list[str]:
    """The blocks of docs/rewards.md in this language, in order."""
    return re.findall(
        rf"^```{language}\n(.*?)^```", (ROOT / "docs" / "rewards.md").read_text(), re.DOTALL | re.MULTILINE
    )


def install_package(folder: Path) -> Path:
    """Builds and installs the package that the page shows. Returns a separate folder with the installation."""
    source, target = folder / "polite-rewards", folder / "site"
    source.mkdir()
    (source / "pyproject.toml").write_text(blocks("toml")[0])
    (source / "polite_rewards.py").write_text(blocks("python")[1])
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run([*command, "--target", str(target), str(source)], check=True)
    return target


@contextmanager
def service_of_the_page(folder: Path, port: int, secret: str) -> Iterator[tuple[str, list[str]]]:
    """The address of the service, and the lines of its log in order."""
    file = folder / "service.py"
    file.write_text(blocks("python")[0])
    variables = {**os.environ, "REWARD_SECRET": secret, "PORT": str(port), "PYTHONUNBUFFERED": "1"}
    log: list[str] = []
    with subprocess.Popen([sys.executable, str(file)], env=variables, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        reader = threading.Thread(target=lambda lines: log.extend(lines), args=(process.stderr,), daemon=True)
        reader.start()
        try:
            url = f"http://127.0.0.1:{port}/"
            _wait_for(url)
            while not any('" 401 ' in line for line in log):  # the thread that reads may be late
                time.sleep(0.01)
            log.clear()
            yield url, log
        finally:
            process.kill()
            reader.join(5)


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            assert httpx.post(url, content=b"{}", trust_env=False, timeout=SECONDS).status_code == 401, (
                "unsigned, so refused"
            )
            return
        except httpx.ConnectError:
            time.sleep(0.05)
    raise AssertionError(f"the service did not start within {SECONDS} s")
