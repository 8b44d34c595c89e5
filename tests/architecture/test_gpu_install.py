"""`make gpu` on machines that we do not have. A fake program `nvidia-smi` says what each machine has."""

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from scripts import check_gpu, pins

ROOT = Path(__file__).resolve().parents[2]
H100 = "NVIDIA H100 80GB HBM3, 580.95.05, 9.0, 81559"
T4 = "Tesla T4, 580.95.05, 7.5, 15360"
V100 = "Tesla V100-SXM2-16GB, 580.95.05, 7.0, 16384"
GB = 10**9
_, LOCK, FACTS = pins.read()
LISTED = {
    line.split("==")[0]: line for line in pins.GPU_HASHED.read_text().splitlines() if "==" in line and line[0] != "#"
}


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """Installs a fake `nvidia-smi` that prints these lines, or this message if it fails. Without a call there is no driver."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def tells(*lines, fails=""):
        program = folder / "nvidia-smi"
        ends = f"echo '{fails}' >&2; exit 9" if fails else f"echo '{chr(10).join(lines)}'"
        program.write_text(f'#!/bin/sh\n[ "$1" = "--query-gpu={",".join(check_gpu.ASK)}" ] || exit 1\n{ends}\n')
        program.chmod(0o755)

    return tells


def unfit(driver_lines, machine="x86_64", glibc=(2, 36), free=100 * GB):
    return check_gpu.incompatibility([check_gpu._card(line) for line in driver_lines], machine, glibc, free, 4 * GB)


def test_a_card_is_read_from_what_the_driver_tells(driver):
    driver(H100, T4)
    assert check_gpu.cards() == [
        check_gpu.GpuCard("NVIDIA H100 80GB HBM3", (580, 95, 5), (9, 0), 81559),
        check_gpu.GpuCard("Tesla T4", (580, 95, 5), (7, 5), 15360),
    ]
    told = check_gpu.described(check_gpu.cards()).splitlines()
    assert told[0] == "NVIDIA H100 80GB HBM3, 80 GiB, driver 580.95.5"
    assert told[1].endswith("it has no bfloat16 arithmetic: train in float32")


def test_memory_that_the_driver_does_not_tell_is_not_made_up(driver):
    driver("NVIDIA GB10, 580.95.05, 12.1, [N/A]")
    (card,) = check_gpu.cards()
    assert card.memory_mib is None and "GiB" not in check_gpu.described([card])


@pytest.mark.parametrize(
    ("lines", "fails", "said"),
    [
        (None, "", "There is no NVIDIA driver here (nvidia-smi is not found)"),
        ((), "No devices were found", "The NVIDIA driver finds no GPU (No devices were found)"),
        ((), "", "The NVIDIA driver finds no GPU (it lists none)"),
        (("NVIDIA TITAN, 470.1",), "", "its driver is too old"),
    ],
)
def test_a_machine_without_a_card_that_answers_is_refused(driver, lines, fails, said):
    if lines is not None:
        driver(*lines, fails=fails)
    with pytest.raises(check_gpu.Unfit) as refused:
        check_gpu.cards()
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("lines", "other", "said"),
    [
        ([H100], {}, ""),
        ([T4], {}, ""),
        ([V100, T4], {}, ""),
        ([V100], {}, "compute capability 7.5 or newer, and Tesla V100-SXM2-16GB has 7.0"),
        ([H100.replace("580.95.05", "575.57.08")], {}, "driver 580 or newer, and this machine has 575.57.8"),
        ([H100], {"machine": "aarch64"}, "are locked for x86_64, and this machine is aarch64"),
        ([H100], {"glibc": (2, 28)}, "need glibc 2.31 or newer, and this system has 2.28"),
        ([H100], {"glibc": ()}, "this system has unknown"),
        ([H100], {"free": 11 * GB}, "needs 12 GB of disk (4.0 GB are fetched and unpacked), and 11.0 GB are free here"),
    ],
)
def test_what_does_not_suit_is_said_with_what_to_do(lines, other, said):
    found = unfit(lines, **other)
    assert said in found and bool(found) == bool(said)
    assert not found or "`make run` needs no GPU" in found


def test_make_gpu_refuses_before_it_fetches_anything(tmp_path, driver):
    driver(V100)
    folder = tmp_path / "bin"
    for name in ("sh", "make", "sed", "sha256sum", "cut", "cat", "grep", "sort"):
        (folder / name).symlink_to(str(shutil.which(name, path="/usr/bin:/bin")))
    (folder / "python3").symlink_to(sys.executable)
    clone = tmp_path / "clone"
    (clone / "scripts").mkdir(parents=True)
    for name in (
        "Makefile",
        *(path.name for path in ROOT.glob("requirements*")),
        "scripts/check_python.py",
        "scripts/check_gpu.py",
    ):
        shutil.copy(ROOT / name, clone / name)
    environment = {"PATH": str(folder), "HOME": str(tmp_path)}

    def make(*arguments):
        return subprocess.run(["make", *arguments], cwd=clone, env=environment, capture_output=True, text=True)

    done = make("gpu")
    assert done.returncode == 2 and "compute capability 7.5" in done.stderr.splitlines()[0], done.stderr
    assert not (clone / ".venv").exists()
    # an environment for the CPU on a machine with a GPU is made only if it is asked for by name
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
    installed = subprocess.run(
        ["sha256sum", "requirements.lock"], cwd=clone, capture_output=True, text=True, env=environment
    )
    (clone / ".venv" / f".installed-{installed.stdout[:12]}").touch()
    refused = make("vllm")
    assert refused.returncode == 2 and "`make gpu` installs vLLM for it" in refused.stderr.splitlines()[0]
    assert not (clone / ".venv-vllm").exists()
    assert "`make gpu`" not in make("--dry-run", "vllm", "TOUCHSTONE_DEVICE=cpu").stderr


def test_the_image_of_the_trainer_installs_ninja_apart_from_the_package_of_the_same_name(tmp_path):
    """vLLM calls the program `ninja`. Beside django-ninja, its package `ninja` would replace django-ninja's. The steps of the image run here
    with a `pip` and an `ln` that only write down what they are asked for.
    """
    (command,) = re.findall(r"^RUN (sed .*?[^\\])$", (ROOT / "docker/trainer.Dockerfile").read_text(), re.M | re.S)
    folder, told = tmp_path / "bin", tmp_path / "told"
    folder.mkdir()
    for name in ("sh", "sed", "grep", "rm", "cat"):
        (folder / name).symlink_to(str(shutil.which(name, path="/usr/bin:/bin")))
    (folder / "python").symlink_to("/bin/true")
    fakes = {
        "ln": f'echo "ln $*" >> {told}',
        "pip": f'echo "pip $*" >> {told}; for last; do :; done; cat "$last" >> {told}',
    }
    for name, text in fakes.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    work = tmp_path / "app"
    work.mkdir()
    for path in (*ROOT.glob("requirements*"), ROOT / "docker/tools-only.txt"):
        shutil.copy(path, work / path.name)
    environment = {"PATH": str(folder), "GPU": "1"}
    done = subprocess.run(["sh", "-c", command], cwd=work, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    calls = [call.splitlines() for call in re.split(r"^pip ", told.read_text(), flags=re.M)[1:]]
    assert any(line.startswith("django-ninja==") for call in calls for line in call)
    [(asked, pin, link)] = [call for call in calls if any(line.startswith("ninja==") for line in call)]
    assert "--target /opt/ninja" in asked and pin == LISTED["ninja"]
    assert link == "ln -s /opt/ninja/bin/ninja /usr/local/bin/ninja"


def test_a_build_without_cuda_is_told_from_one_with_it(tmp_path, monkeypatch):
    told = tmp_path / "torch" / "version.py"
    told.parent.mkdir()
    monkeypatch.setattr(metadata, "distribution", lambda name: _Installed(tmp_path))
    for text, replaced in (
        ("cuda: Optional[str] = None\n", True),
        ("cuda = None\n", True),
        ("cuda: Optional[str] = '13.0'\n", False),
        ("cuda = '13.0'\n", False),
    ):
        told.write_text("__version__ = '2.13.0'\n" + text)
        assert check_gpu.without_cuda() is replaced, text


class _Installed:
    def __init__(self, folder):
        self._folder = folder

    def locate_file(self, name):
        return self._folder / name


def test_the_lock_for_gpus_names_every_file_by_its_digest_and_agrees_with_the_lock():
    base = {pin.name: pin.version for pin in pins.pins(LOCK)}
    text = pins.GPU_HASHED.read_text()
    assert "--require-hashes" in text.splitlines() and "--only-binary=:all:" in text.splitlines()
    assert check_gpu.wanted_bytes(text) > GB
    for name, line in LISTED.items():
        assert re.fullmatch(rf"{re.escape(name)}==\S+( --hash=sha256:[0-9a-f]{{64}})+", line), line
        version = line.split("==")[1].split()[0]
        assert name == pins.APART and version == base[name] or name not in base, (
            f"{name}: `make gpu` changes what was locked"
        )
    assert LISTED["vllm"].startswith("vllm==0.32.")


def test_its_torch_is_the_one_that_the_lock_compares_and_brings_the_same_libraries():
    known = FACTS[pins.APART]["sha256"]
    digests = {digest for file, digest in known.items() if file.startswith("torch-") and "x86_64" in file}
    assert set(re.findall(r"sha256:(\w+)", LISTED["torch"])) == digests
    for name, version in FACTS[pins.APART]["brings"].items():
        assert name.startswith("cuda-") or LISTED[name].startswith(f"{name}=={version} "), name


def resolved(**files):
    packages = [
        {
            "name": name,
            "version": "1.0",
            "wheels": [
                {"url": f"https://x/{file}", "size": 10, "hashes": {"sha256": f"{i:064x}"}}
                for i, file in enumerate(each)
            ],
        }
        for name, each in files.items()
    ]
    return {"packages": packages}


def test_a_lock_keeps_the_wheels_that_our_pythons_take_there_and_only_what_is_new():
    mixed = ["new-1.0-cp38-abi3-manylinux_2_31_x86_64.whl", "new-1.0-cp38-abi3-manylinux_2_31_aarch64.whl"]
    text = pins.on_gpus(resolved(new=mixed, old=["old-1.0-py3-none-any.whl"]), "old==1.0\n")
    assert text.splitlines()[1] == "# 10 bytes are fetched at most"
    assert text.splitlines()[4:] == [f"new==1.0 --hash=sha256:{0:064x}"]
    with pytest.raises(ValueError, match=r"new 1.0: no wheel for CPython 3.11, x86_64"):
        pins.on_gpus(resolved(new=["new-1.0-cp38-abi3-manylinux_2_35_x86_64.whl"]), "")
    twice = resolved(new=mixed)
    with pytest.raises(ValueError, match="another version for each Python"):
        pins.on_gpus({"packages": twice["packages"] * 2}, "")
