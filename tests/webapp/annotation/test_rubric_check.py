"""The audit of a file's rubrics from a shell."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.shared import SHARED, needs_shared


def check(*args) -> dict:
    out = StringIO()
    call_command("rubric_check", *map(str, args), stdout=out)
    return json.loads(out.getvalue())


def example(key: str, *texts: str) -> str:
    row: dict[str, Any] = {"key": key, "prompt": [{"role": "user", "content": "Tea?"}]}
    if texts:
        row["rubric"] = {"criteria": [{"id": f"c{n}", "text": text, "points": 1} for n, text in enumerate(texts)]}
    return json.dumps(row)


def test_hints_are_counted_and_listed_with_their_line(tmp_path):
    file = tmp_path / "rubrics.jsonl"
    sound, vague = example("a", "Names tea.", "Names a cup."), example("b", "Is good.", "Names tea and adds sugar.")
    file.write_text("\n".join([sound, vague, example("c"), '{"key": 3']) + "\n")
    found = check(file)
    assert {name: found[name] for name in ("rubrics", "criteria", "sound", "without", "unreadable")} == {
        "rubrics": 2,
        "criteria": 4,
        "sound": 1,
        "without": 1,
        "unreadable": 1,
    }
    assert found["hints"] == {"vague": 1, "compound": 1}
    assert [(each["line"], each["key"], len(each["hints"])) for each in found["listed"]] == [(2, "b", 2)]
    assert check(file, "--show", 0)["listed"] == []


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(CommandError, match="No such file"):
        check(tmp_path / "none.jsonl")


@needs_shared
def test_public_rubrics_of_other_formats_are_read_too():
    found = check(SHARED / "healthbench_sample" / "healthbench_30.jsonl")
    assert (found["format"], found["rubrics"], found["criteria"], found["unreadable"]) == ("healthbench", 30, 352, 0)
