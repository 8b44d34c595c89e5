"""The task of a claim as a job of the cluster: its examples are results, its model is a folder. A killed job makes what is missing."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainer.claims import faults, toy
from trainer.claims.tasks import TASKS
from trainer.claims.teaching import Progress
from trainer.contracts import Example
from trainer.contracts.weights import WeightsSteps
from trainer.weights import claim_task
from trainer.weights.client import JobStopped


class Client:
    """The parts of its server that `work` needs."""

    def __init__(self, folder: Path, task: str, done: int = 0, wanted: int = 4, stops: bool = False) -> None:
        params = {"task": task, "wanted": wanted}
        self.assignment = SimpleNamespace(job_id=7, params=params, done=done, folder=str(folder))
        self.objects: Any = None
        self.phase, self.told, self.stored, self.stops = "", list[WeightsSteps](), list[str](), stops
        self.steps: WeightsSteps | None = None

    def store(self, results: Sequence[dict[str, Any]]) -> None:
        self.stored += [each["canonical"] for each in results]

    def check(self) -> None:
        assert self.phase == "teaching the model" and self.steps is not None
        self.told.append(self.steps)
        if self.stops:
            raise JobStopped


@pytest.fixture
def taught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is taught in two steps."""

    def make(folder: Path, progress: Progress) -> bool:
        return faults.make_model(folder, progress, steps=2)

    monkeypatch.setitem(TASKS, "faults", replace(TASKS["faults"], make_model=make))


def test_examples_and_model_are_made(taught: None, tmp_path: Path) -> None:
    client = Client(tmp_path, "faults")
    told = claim_task.work(client)  # type: ignore[arg-type]
    rows = [Example.model_validate_json(text) for text in client.stored]
    assert rows == faults.examples() and told == {"examples": len(rows), "files": []}
    assert (tmp_path / claim_task.MODEL / "config.json").is_file()
    first, second = client.told
    assert first == WeightsSteps(done=1, total=2), "one step tells no pace"
    assert (second.done, second.total, second.seconds_left) == (2, 2, 0.0)


def test_a_job_that_was_killed_makes_what_is_missing(taught: None, tmp_path: Path) -> None:
    count = len(faults.examples())
    client = Client(tmp_path, "faults", done=count - 3)
    assert claim_task.work(client)["examples"] == count and len(client.stored) == 3  # type: ignore[arg-type]
    whole = (tmp_path / claim_task.MODEL / "model.safetensors").read_bytes()
    again = Client(tmp_path, "faults", done=count)
    claim_task.work(again)  # type: ignore[arg-type]
    assert not again.stored and not again.told, "all of it is there"
    elsewhere = Client(tmp_path / "anew", "faults")
    claim_task.work(elsewhere)  # type: ignore[arg-type]
    assert (tmp_path / "anew" / claim_task.MODEL / "model.safetensors").read_bytes() == whole


def test_whoever_stops_it_leaves_no_half_model(taught: None, tmp_path: Path) -> None:
    with pytest.raises(JobStopped):
        claim_task.work(Client(tmp_path, "faults", stops=True))  # type: ignore[arg-type]
    assert not (tmp_path / claim_task.MODEL).exists()


def test_the_number_of_wanted_syllables_is_the_plans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make: Callable[[Path, Progress], bool] = lambda folder, progress: True  # noqa: E731
    monkeypatch.setitem(TASKS, "syllables", replace(TASKS["syllables"], make_model=make))
    client = Client(tmp_path, "syllables", wanted=2)
    claim_task.work(client)  # type: ignore[arg-type]
    assert [Example.model_validate_json(text) for text in client.stored] == toy.examples(2)


def test_the_model_is_sent_where_node_and_server_share_no_disk(taught: None, tmp_path: Path) -> None:
    from trainer.outputs import list_files

    class Objects:
        def keep(self, place: Path, path: str) -> Any:
            assert path == claim_task.MODEL
            return list_files(place)

    client = Client(tmp_path, "faults")
    client.objects = Objects()
    files = claim_task.work(client)["files"]  # type: ignore[arg-type]
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {file["path"] for file in files}


def test_the_time_that_is_left_is_that_of_the_pace_since_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(folder: Path, progress: Progress) -> bool:
        for second, step in ((100.0, 1), (102.0, 2), (108.0, 5)):
            monkeypatch.setattr("time.monotonic", lambda second=second: second)
            progress(step, 10)
        return True

    monkeypatch.setitem(TASKS, "faults", replace(TASKS["faults"], make_model=make))
    client = Client(tmp_path, "faults")
    claim_task.work(client)  # type: ignore[arg-type]
    assert [each.seconds_left for each in client.told] == [None, 16.0, 10.0]
