"""Rewards of every kind that asks another program, with random answers. A run that is killed continues with the stored answers."""

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.killed_runs import run_until_killed
from tests.trainer.loops.conftest import events_of
from tests.trainer.running import run
from trainer.contracts import Criterion, Example, Rubric
from trainer.judges.chat import Target
from trainer.judges.local import LocalTarget
from trainer.judges.spec import digest, resolve
from trainer.rewards.access import Access, JudgeAccess
from trainer.rewards.journal import Journal

from .conftest import async_config
from .fake import FakeFleet

REWARDS = [
    {"kind": "http", "endpoint": "mine"},
    {"kind": "python", "entry": "drawn"},
    {"kind": "reward_model", "model": "scalar"},
    {"kind": "rubric", "judge": "Local v1"},
]
PACKAGE = """
import json, os

def drawn(responses):
    with open(os.environ["DRAWS"], "a+") as log:
        log.seek(0)
        before = len(log.readlines())
        for each in responses:
            log.write(each["place"] + "\\n")
    return [(before + at) / 1000 for at in range(len(responses))]
"""
JUDGE = """
import json, os, sys
print(json.dumps({"judge": "yes-no"}), flush=True)
for line in sys.stdin:
    with open(os.environ["VERDICTS"], "a+") as log:
        log.seek(0)
        drawn = len(log.readlines())
        log.write("asked\\n")
    row = {"key": json.loads(line)["key"], "state": "done", "prompt_tokens": 7, "met": drawn % 3 == 0}
    row |= {"probability": drawn / 1000, "mass": 1.0, "calibrated": False, "cached_tokens": 0}
    print(json.dumps(row), flush=True)
"""
Drawn = dict[tuple[str, str], Any]
"""The reported values, by the name of the part and the place of the response."""


@pytest.fixture
def asked_responses() -> Counter[str]:
    """The responses that the service was asked about."""
    return Counter()


@pytest.fixture
def service(asked_responses: Counter[str]) -> Iterator[str]:
    draws = count()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers["content-length"])))["responses"]
            asked_responses.update(f"http {each['place']}" for each in told)
            answer = json.dumps([next(draws) / 1000 for _ in told]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package whose function answers at random, and the log of its calls."""
    (tmp_path / "drawing.py").write_text(PACKAGE)
    info = tmp_path / "drawing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: drawing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[touchstone.rewards]\ndrawn = drawing:drawn\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("TOUCHSTONE_REWARD_FUNCTIONS", "drawn")
    monkeypatch.setenv("DRAWS", str(tmp_path / "draws"))
    monkeypatch.setenv("VERDICTS", str(tmp_path / "verdicts"))
    monkeypatch.setenv("SCORES", str(tmp_path / "scores"))
    return tmp_path / "draws"


def drawing(score: Any) -> Any:
    """The scores of a reward model that change with every response that any process has given to it."""

    async def moved(model: Any, conversations: Any, max_tokens: int) -> list[float | str]:
        found = await score(model, conversations, max_tokens)
        with open(os.environ["SCORES"], "a+") as log:
            log.seek(0)
            before = len(log.readlines())
            log.write("read\n" * len(found))
        return [value if isinstance(value, str) else value + before / 1000 for value in found]

    return moved


def prepare() -> None:
    """The setup that the killed process has too."""
    from trainer.inference.reward_models import RewardModel
    from trainer.runners import ray_fleet

    RewardModel.score = drawing(RewardModel.score)  # type: ignore[method-assign]
    ray_fleet.RayFleet = FakeFleet  # type: ignore[assignment,misc]


@pytest.fixture
def scalar(tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A reward model whose scores change with every response that it reads."""
    from trainer.inference.models import load_scalar, load_tokenizer
    from trainer.inference.reward_models import RewardModel

    load_scalar(tiny_dir, seed=3).save_pretrained(tmp_path / "scalar")
    load_tokenizer(tiny_dir).save_pretrained(tmp_path / "scalar")
    monkeypatch.setattr(RewardModel, "score", drawing(RewardModel.score))
    return tmp_path / "scalar"


@pytest.fixture
def data(examples: list[Example], tmp_path: Path) -> Path:
    rubric = Rubric(criteria=(Criterion(id="kind", text="Is kind.", points=2),))
    rows = [row.model_copy(update={"rubric": rubric}) for row in examples]
    (tmp_path / "judged.jsonl").write_text("".join(row.canonical() + "\n" for row in rows))
    return tmp_path / "judged.jsonl"


def written(out: Path) -> Drawn:
    journal = Journal(out / "rewards.jsonl")
    found = {
        (entry.name, entry.place): entry.part.verdicts[0].note if entry.part.verdicts else entry.part.value
        for entry in journal._known.values()
        if entry.place.startswith("train/")
    }
    journal.close()
    return found


def trained(out: Path) -> Drawn:
    """Groups are numbered in the order of the data, two in each step."""
    rows = [(e.step, row) for e in events_of(out) if e.data.kind == "rollouts" for row in e.data.rollouts]
    found: Drawn = {}
    for step, row in rows:
        for part in row.parts if row.phase == "train" else ():
            place = f"train/{2 * (step - 1) + row.group}/{row.index}"
            found[part.name, place] = row.criteria[0].verdict.note if part.kind == "rubric" else part.value
    return found


def learned(events: list[Any], step: int) -> dict[str, float]:
    """The metrics without those that depend on the clock."""
    kept = [e.data.values for e in events if e.data.kind == "metrics" and e.step == step]
    clock = ("perf/", "async/utilisation", "judge/latency")
    return {key: value for values in kept for key, value in values.items() if not key.startswith(clock)}


@pytest.mark.parametrize(
    ("where", "number"),
    [("trainer.loops.recipes.policy:PolicyStage._update", 4), ("trainer.runners.conductor:Conductor._scored", 3)],
    ids=["in its fourth update", "when its third group was told"],
)
def test_an_asynchronous_run_that_is_killed_asks_nobody_twice_and_learns_the_same(
    where: str, number: int, *, data: Path, service: str, package: Path, scalar: Path,
    asked_responses: Counter[str], tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    spec = resolve({"kind": "criterion"})
    judge = LocalTarget([sys.executable, "-c", JUDGE], ".", "m", yes_no=True)
    access = Access({"Local v1": JudgeAccess(spec, digest(spec, "1"), judge)}, {"mine": Target(service, "")})
    once = {"steps": 4, "checkpoint": {"every": 2, "keep": 9}, "evaluation": {"every": 0, "max_examples": 1}}
    config = async_config({"ahead": 2}, rewards=REWARDS, **once)
    monkeypatch.setattr("trainer.runners.ray_fleet.RayFleet", FakeFleet)
    out = tmp_path / "run"
    given: dict[str, Any] = {"access": access, "reward_model": scalar}
    run_until_killed(where, config, data, tiny_dir, out, call=number, prepare=prepare, **given)
    before, first, had = written(out), events_of(out), len(package.read_text().split())
    verdicts = len((tmp_path / "verdicts").read_text().split())
    assert {part for part, _ in before} == {"http", "python", "reward_model", "rubric"}
    assert run(config, data, tiny_dir, out, resume=True, **given)

    assert {place: trained(out)[place] for place in before} == before, "the answers of before the kill are trained on"
    places = package.read_text().split()
    assert len(places) == len(set(places)) == 4 * 8 + 2 * 1
    assert {key.removeprefix("http ") for key in asked_responses if key.startswith("http ")} == set(places)
    assert asked_responses.total() == len(places), "nor was the service asked about any a second time"
    assert len((tmp_path / "scores").read_text().split()) == len(places), "nor the reward model"
    assert len((tmp_path / "verdicts").read_text().split()) - verdicts <= len(places) - had
    if number == 4:  # its third step came after the last checkpoint
        again = learned(events_of(out)[len(first) :], 3)
        assert again and again == learned(first, 3)
