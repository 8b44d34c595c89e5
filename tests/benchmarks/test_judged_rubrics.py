"""The judges' engine asks a small model behind the chat API, and its verdicts are compared with those of the verifiers."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any, cast

import pytest

from benchmarks.judge_endpoint import READS, WRITES, EndpointServer, call_of
from benchmarks.judged_rubrics import JUDGE, compared, demo, judged, truth_of
from trainer.judges.inputs import JudgeInput
from trainer.logit_judge.answering import Answering
from trainer.logit_judge.calls import LocalCall
from trainer.rewards import access
from trainer.rewards.parts import RewardAnswer


class Told:
    """Says yes if the question contains the word blue. The answer is not JSON."""

    def answer(self, calls: Sequence[LocalCall]) -> list[dict[str, Any]]:
        return [self._one(call) for call in calls]

    def _one(self, call: LocalCall) -> dict[str, Any]:
        if call.reply == "text":
            return {"state": "done", "text": "It is fine.", "finish_reason": "stop", "prompt_tokens": 7}
        met = "blue" in call.messages[-1].content.rpartition("true of the response?")[2]
        return {"state": "done", "met": met, "probability": 0.5, "prompt_tokens": 7}


@pytest.fixture
def url() -> Iterator[str]:
    server = EndpointServer(cast(Answering, Told()))
    Thread(target=server.serve, daemon=True).start()
    yield server.url
    server.close()


def answers(url: str, model: str, folder: Path) -> list[RewardAnswer]:
    entry = {"spec": {"kind": "criterion", "retries": 0}, "endpoint": {"url": url, "model": model}}
    file = folder / "judges.json"
    file.write_text(json.dumps({"judges": {JUDGE: entry}}))
    row = judged(demo()[0])
    criteria = row.rubric.criteria if row.rubric else ()
    criteria = tuple(c.model_copy(update={"text": "Is blue."}) if c.id == "c1" else c for c in criteria)

    async def ask() -> list[RewardAnswer]:
        judge = access.read(file).judges[JUDGE].open(None)
        try:
            [found] = await judge.ask([JudgeInput(row.key, row.prompt, {"sample": "Air."}, criteria)])
            return found
        finally:
            await judge.close()

    return asyncio.run(ask())


def test_a_criterion_is_read_as_yes_or_no_over_http(url: str, tmp_path: Path) -> None:
    found = answers(url, READS, tmp_path)
    assert [answer.parsed["met"] for answer in found if answer.parsed] == [True, *[False] * (len(found) - 1)]
    assert all(answer.called for answer in found) and len(found) > 2


def test_what_is_no_json_is_no_verdict(url: str, tmp_path: Path) -> None:
    found = answers(url, WRITES, tmp_path)
    assert found and all(answer.parsed is None and not answer.away and answer.problem for answer in found)


def test_an_unknown_model_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no model 'other'"):
        call_of({"model": "other", "messages": [{"role": "user", "content": "x"}]}, 0)
    assert all(answer.parsed is None for answer in answers(url, "other", tmp_path))


def test_every_criterion_is_judged_and_the_verifiers_are_kept_for_the_truth() -> None:
    rows = demo()
    for row in rows:
        asked = judged(row).rubric
        assert asked is not None and all(criterion.verifier is None for criterion in asked.criteria)
        assert [c.id for c in asked.criteria] == [c.id for c in truth_of(row).criteria]
    said = [{"verdict": {"met": met}} for met in (True, None, False, True)]
    rollout = {"response": "The air scatters blue light towards you.", "criteria": said}
    truth, verdicts, score = compared(rollout, rows[0])
    assert truth == [True, True, True, True] and verdicts == [True, None, False, True] and score == 1.0
    assert compared(rollout | {"criteria": []}, rows[0])[1] == [None] * 4
