"""A file is installed only if its digest is the one in the lock."""

import json
import subprocess
import sys
import zipfile
from hashlib import sha256

import pytest

from scripts import digests, lock, pins

_, LOCK, FACTS = pins.read()
TORCH = "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl"
INDEX = "https://index.example/files"


def test_the_list_is_what_lock_and_facts_say():
    assert pins.HASHED.read_text() == pins.hashed(LOCK, FACTS)


def test_the_pip_that_installs_the_rest_is_the_one_that_made_the_lock_and_has_a_digest():
    digest = pins.PIP.read_text().rpartition("--hash=sha256:")[2].strip()
    assert len(digest) == 64 and pins.PIP.read_text() == pins.of_pip(lock.TOOLS[0], digest)


def test_what_torch_leaves_open_is_pinned_as_well():
    assert pins.BROUGHT.read_text() == pins.brought(FACTS)
    named = {file.partition("-")[0].replace("_", "-") for file in FACTS[pins.APART]["sha256"]} - {"torch"}
    assert named == FACTS[pins.APART]["brings"].keys() and "cuda-bindings" in named


def test_every_pin_but_torch_is_in_the_list_with_the_digest_of_every_file():
    lines = {line.partition("==")[0]: line for line in pins.HASHED.read_text().splitlines() if "==" in line}
    assert lines.keys() == {pin.name for pin in pins.pins(LOCK)} - {pins.APART}
    for name, line in lines.items():
        assert {f"--hash=sha256:{each}" for each in FACTS[name]["sha256"].values()} <= set(line.split()), name
        assert all(len(each) == 64 for each in FACTS[name]["sha256"].values()), name


def test_the_digests_of_torch_and_of_what_its_build_brings_are_known_for_every_python_and_machine():
    known = FACTS[pins.APART]["sha256"]
    for machine in pins.MACHINES:
        for python in pins.PYTHONS:
            tag = f"cp{python.replace('.', '')}-manylinux_2_28_{machine}.whl"
            assert any(file.startswith("torch-") and file.endswith(tag) for file in known), tag
        assert any(file.startswith("nvidia_") and machine in file for file in known), machine


def wheel(folder, text="value = 1\n"):
    folder.mkdir()
    path = folder / "left_over-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("left_over.py", text)
        made.writestr("left_over-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: left-over\nVersion: 1.0\n")
        made.writestr("left_over-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr("left_over-1.0.dist-info/RECORD", "")
    return path


def test_pip_takes_the_file_that_was_locked_and_no_other(tmp_path):
    genuine, other = wheel(tmp_path / "genuine"), wheel(tmp_path / "other", "value = 2\n")
    digest = sha256(genuine.read_bytes()).hexdigest()
    facts = {"left-over": {"version": "1.0", "groups": [], "sha256": {genuine.name: digest}}}
    listed = tmp_path / "list.sha256"
    listed.write_text(pins.hashed("left-over==1.0 ; python_version >= '3.11'\n", facts))
    for path, code in ((genuine, 0), (other, 1)):
        command = [sys.executable, "-m", "pip", "--isolated", "install", "-qq", "--no-index", "--no-deps"]
        command += ["--find-links", path.parent, "--target", tmp_path / "out" / path.parent.name, "-r", listed]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert [path.parent.name for path in tmp_path.glob("out/*/left_over.py")] == ["genuine"]


def pip_report(file, digest="a" * 64, url=INDEX, name="torch"):
    archive = {"archive_info": {"hashes": {"sha256": digest}}}
    return {"install": [{"metadata": {"name": name}, "download_info": {"url": f"{url}/{file}", **archive}}]}


def test_a_known_file_with_its_digest_is_taken():
    assert digests.compare(pip_report(TORCH), {TORCH: "a" * 64}, False) == ({}, [])


@pytest.mark.parametrize("index_named", [False, True])
@pytest.mark.parametrize("url", [INDEX, "file:///wheels"])
def test_a_known_file_with_another_digest_is_refused_wherever_it_comes_from(url, index_named):
    refused, taken = digests.compare(pip_report(TORCH, "b" * 64, url), {TORCH: "a" * 64}, index_named)
    assert refused == {"torch": f"{TORCH}: its digest is {'b' * 64}, expected is {'a' * 64}"} and taken == []


@pytest.mark.parametrize(
    ("url", "index_named", "is_taken"), [(INDEX, False, False), (INDEX, True, True), ("file:///w", False, True)]
)
def test_an_unknown_file_is_taken_from_this_disk_or_a_named_index_only_and_is_told(url, index_named, is_taken):
    file = "torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl"
    refused, taken = digests.compare(pip_report(file, url=url), {TORCH: "a" * 64}, index_named)
    assert (list(refused), len(taken)) == ([], 1) if is_taken else (["torch"], 0)
    assert "torch-2.13.0+cpu-cp311" in "".join([*refused.values(), *taken])


def test_what_old_pips_tell_is_read_and_silence_is_no_consent():
    report = pip_report(TORCH)
    report["install"][0]["download_info"]["archive_info"] = {"hash": f"sha256={'a' * 64}"}  # pip 22.2 to 23.0
    assert digests.compare(report, {TORCH: "a" * 64}, False) == ({}, [])
    report["install"][0]["download_info"]["archive_info"] = {}
    assert digests.compare(report, {TORCH: "a" * 64}, True)[0] == {"torch": f"{TORCH}: pip does not tell its digest"}


def test_what_is_refused_is_taken_out_again_and_nothing_of_it_runs(tmp_path):
    ran = tmp_path / "ran"
    made = wheel(tmp_path / "made")
    with zipfile.ZipFile(made, "a") as more:
        more.writestr("left_over.pth", f"import pathlib; pathlib.Path({str(ran)!r}).touch()\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    into = [sys.executable, "-m", "pip", "--isolated", "--python", python, "install", "-qq", "--no-index", "--no-deps"]
    subprocess.run([*into, made], check=True)
    assert not ran.exists() and len(list(tmp_path.glob("venv/lib/*/site-packages/left_over*"))) == 3
    (tmp_path / "report.json").write_text(json.dumps(pip_report(made.name, "b" * 64, name="Left_Over")))
    command = [python, "-I", "-S", digests.__file__, tmp_path / "report.json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and f"Refused: {made.name}: not a file that is known" in done.stderr, done.stderr
    assert not ran.exists() and not list(tmp_path.glob("venv/lib/*/site-packages/left_over*/*"))
    assert not list(tmp_path.glob("venv/lib/*/site-packages/left_over.p*"))
    assert subprocess.run([python, "-c", "import left_over"], capture_output=True).returncode == 1 and not ran.exists()


def test_every_way_to_install_compares_digests():
    makefile = (pins.ROOT / "Makefile").read_text()
    assert "-r requirements.sha256" in makefile and "$(PY) -I -S scripts/digests.py" in makefile
    assert "-c requirements-torch.lock" in makefile and "--require-hashes -r requirements-pip.sha256" in makefile
    assert not [line for line in makefile.splitlines() if "-r requirements.lock" in line]
    for name in ("web", "trainer"):
        text = (pins.ROOT / "docker" / f"{name}.Dockerfile").read_text()
        assert f"-r {name}.sha256" in text and "-vf patterns requirements.sha256" in text
        assert "torch" not in text or "python -I -S scripts/digests.py torch.json" in text
