"""The server in the measurement of judges gives answers that judges can read."""

import json

import pytest

from benchmarks import judges
from trainer.judges.calls import expand, read
from trainer.judges.spec import resolve


@pytest.mark.parametrize(("kind", "calls"), [("criterion", judges.CRITERIA), ("checklist", 1)])
def test_the_servers_answers_are_readable_verdicts(kind, calls):
    spec = resolve({"kind": kind})
    [given] = judges.responses(1)
    asked = expand(spec, "version", given)
    assert len(asked) == calls
    assert all(read(spec, each.subject, judges.ANSWERS[kind]).problem == "" for each in asked)


def test_what_prompts_share_is_counted_as_if_they_came_one_after_the_other():
    bodies = [
        json.dumps({"messages": [{"role": "user", "content": "x" * 634 + last}]}).encode()
        for last in ("a", "b", "c", "d")
    ]
    # "<user>" and 634 letters are ten blocks of 16 tokens; three of four requests find these in the cache, and have one token of their own
    assert judges.cacheable(bodies) == pytest.approx(3 * 160 / (4 * 161))
