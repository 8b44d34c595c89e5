"""For every end of a run, its earlier records are written first. If that fails, the run says what is missing."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.running import run
from trainer.loops.session.errors import RunFailed, StopRequested
from trainer.loops.session.stage import ModelOutput, StageJob, State, Tell

from ..conftest import events_of, small_config

MISSING = f"Records of responses of step 2 could not be written: [Errno {errno.EIO}] {os.strerror(errno.EIO)}"


class Stage:
    """Reports records that cannot be written, after the checkpoint of step 1, and then ends as `end` says."""

    evaluates = False

    def __init__(self, job: StageJob, end: str) -> None:
        self._monitor, self._end = job.monitor, end

    def open(self, step: int) -> None: ...

    def step(self, number: int, tell: Tell) -> None:
        if number == 2:
            tell.rollouts(broken)
            if self._end == "stop":
                self._monitor.request_stop()
            tell.check()
            raise RunFailed("there is another reason")

    def state(self) -> State:
        return State({}, {"policy": {}, "optimizer": {}})

    def outputs(self) -> Iterator[ModelOutput]:
        if self._end == "finish":
            self._monitor.rollouts(2, broken)
        yield from ()

    def close(self) -> None: ...


def broken() -> Any:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("end", ["finish", "stop", "fail"])
def test_a_run_whose_last_records_are_not_written_says_so(
    end: str, examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    config = small_config(steps=1 if end == "finish" else 2)
    make: Callable[[StageJob], Any] = lambda job: Stage(job, end)  # noqa: E731
    assert not run(config, examples_file, tiny_dir, tmp_path, make=make)
    *before, last = [event.data for event in events_of(tmp_path)]
    assert (last.kind, last.state) == ("state", "failed")
    assert last.reason == ("there is another reason" if end == "fail" else MISSING)
    lines = [data.message for data in before if data.kind == "log" and data.level == "error"]
    assert any(line.endswith(MISSING) for line in lines)
    assert [data.path for data in before if data.kind == "artifact"] == ["checkpoints/step-000001"]


def test_a_run_that_is_stopped_while_it_waits_for_its_places_says_where_it_would_have_gone_on(
    examples_file: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    def waits(job: StageJob) -> Any:
        raise StopRequested

    def stopped(resume: bool) -> tuple[int, str]:
        assert run(small_config(steps=2), examples_file, tiny_dir, tmp_path, make=waits, resume=resume)
        last = events_of(tmp_path)[-1]
        assert last.data.kind == "state" and last.data.state == "stopped"
        return last.step, last.data.reason

    assert stopped(resume=False) == stopped(resume=True) == (0, "Stopped before it began")
    make: Callable[[StageJob], Any] = lambda job: Stage(job, "fail")  # noqa: E731
    assert not run(small_config(steps=2), examples_file, tiny_dir, tmp_path, make=make)
    assert stopped(resume=True) == (1, "Stopped before it continued after step 1")
