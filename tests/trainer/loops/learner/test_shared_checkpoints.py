"""Checkpoints of processes that hold a model together. Each process writes its share, and any number of processes can read it."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests import fork_server
from trainer import checkpoints

from .sharing import COUNTS


@pytest.fixture(scope="module")
def out(tiny_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    command = [*fork_server.command("tests.trainer.loops.learner.sharing"), str(tiny_dir), str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (folder / "said").write_text(done.stderr)
    return folder


def test_any_number_of_processes_reads_what_any_number_wrote_to_the_last_bit(out: Path) -> None:
    ends = json.loads((out / "ends.json").read_text())
    expected = {f"{work} {count}": [0] * count for work in ("writes", "reads") for count in COUNTS}
    expected["writes 2"] = [0, signal.SIGKILL]
    assert ends == expected, (out / "said").read_text()[-3000:]
    assert len(list(out.glob("read-*"))) == sum(COUNTS)


@pytest.mark.parametrize("count", COUNTS)
def test_a_process_holds_no_more_than_its_share_and_one_tensor_to_save_it(count: int, out: Path) -> None:
    for rank in range(count):
        told = json.loads((out / f"held-{count}-{rank}.json").read_text())
        assert told["share"] <= told["most"] <= told["share"] + told["largest"]
        if count > 1:
            assert told["share"] < 0.7 * told["whole"] * 2 / count


def test_a_process_that_is_killed_in_the_middle_leaves_the_checkpoint_before(out: Path) -> None:
    root = out / "of-2"
    left = root / ".step-000002.partial"
    assert (left / "policy-00001-of-00002.safetensors").is_file()
    assert (left / "policy-00002-of-00002.safetensors").read_bytes() == b"half"
    assert checkpoints.steps(root) == [1]
    newest = checkpoints.load_newest(root)
    assert newest is not None and newest.step == 1


def test_nothing_but_safetensors_and_json_is_written(out: Path) -> None:
    for count in COUNTS:
        folder = out / f"of-{count}" / "step-000001"
        assert len(list(folder.iterdir())) == 2 * count + 1
        assert {file.suffix for file in folder.iterdir()} == {".safetensors", ".json"}
