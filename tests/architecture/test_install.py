"""`make run` on a machine with an unsuitable Python: it prints one sentence with the remedy before it makes anything."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ("Makefile", "requirements.lock", "requirements.sha256", "requirements-vllm.lock", "requirements-gpu.sha256")
# A fake python3 with another version: it runs the lines below first, and then the script that it was called with
FAKE = """#!/bin/sh
exec {real} -c '
import runpy, sys
{lie}
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
' "$@"
"""


@pytest.fixture
def clone(tmp_path):
    """The files of a fresh clone that the first steps read."""
    (tmp_path / "scripts").mkdir()
    for name in (*FILES, "scripts/check_python.py", "scripts/check_gpu.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def programs(clone: Path) -> Path:
    """A folder with all programs that the first steps call, except Python."""
    folder = clone / "bin"
    folder.mkdir()
    for name in ("sh", "make", "sed", "sha256sum", "cut", "cat", "grep", "sort"):
        (folder / name).symlink_to(str(shutil.which(name)))
    return folder


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def make_run(clone: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "run"], cwd=clone, env={"PATH": str(clone / "bin"), "HOME": str(clone)}, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ("sys.version_info = (3, 9, 2)", "and python3 is 3.9.2: name another one, as in `make run PYTHON=python3.12`."),
        (
            "sys.version_info = (3, 15, 0)",
            "and python3 is 3.15.0: name another one, as in `make run PYTHON=python3.12`.",
        ),
        ('sys.modules["ensurepip"] = None', "run `apt-get install python3-venv` as root."),
        (None, "There is no python3 here: install Python, or name one, as in `make run PYTHON=python3.12`."),
    ],
)
def test_what_is_unfit_is_said_in_one_sentence(clone, lie, said):
    folder = programs(clone)
    if lie:
        write_program(folder / "python3", FAKE.format(real=sys.executable, lie=f'{lie}; sys.executable = "python3"'))
    done = make_run(clone)
    first, second = done.stderr.splitlines()
    assert first.endswith(said)
    assert second.startswith("make: ***")  # make's own line names the step
    assert done.returncode == 2 and done.stdout == ""
    assert not (clone / ".venv").exists()


def test_an_environment_that_was_broken_off_is_made_again(clone):
    """A failing `python3 -m venv` leaves an environment without pip."""
    write_program(clone / ".venv" / "bin" / "python", "#!/bin/sh\nexit 1\n")
    calls = clone / "calls"
    write_program(programs(clone) / "python3", f'#!/bin/sh\necho "$@" >> {calls}\n')
    make_run(clone)
    assert calls.read_text().splitlines() == ["scripts/check_python.py", "-m venv --clear .venv"]
