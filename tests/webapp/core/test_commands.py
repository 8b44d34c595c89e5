"""Commands that a script reads: one JSON object on stdout and a status that says whether it is a result."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db
COMMANDS = {
    "agreement": [],
    "audit": [],
    "rationale": [],
    "rubric_check": [],
    "import_verdicts": [],
    "import_dataset": ["--name", "none", "--workspace", "lab"],
}
FILES = {
    "not UTF-8": b'{"prompt": "\xff"}\n',
    "not JSON": b"{\n",
    "no object": b"[1, 2]\n3\n",
    "deep": b"[" * 100_000,
    "huge number": b'{"unit": ' + b"9" * 5000 + b"}\n",
    "half a character": b'{"unit": "\\ud800"}\n',
    "not gzip": b"\x1f\x8bnothing",
}


def run(command: str, path: object) -> tuple[dict, int]:
    """The output and the exit status."""
    out, status = StringIO(), 0
    try:
        call_command(command, str(path), *COMMANDS[command], stdout=out, stderr=StringIO())
    except CommandError as problem:
        status = problem.returncode
    except SystemExit as end:
        status = int(end.code or 0)
    return json.loads(out.getvalue()), status


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["nowhere.jsonl", "n" * 300, "folder"])
def test_what_cannot_be_read_at_all_is_told_as_json(team, tmp_path, command, name):
    (tmp_path / "folder").mkdir()
    told, status = run(command, tmp_path / name)
    assert status == 1
    assert told["error"]


@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "rubric_check"])
@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_a_file_without_a_good_line_is_told_as_json(team, tmp_path, command, content):
    (tmp_path / "lines.jsonl").write_bytes(content)
    told, status = run(command, tmp_path / "lines.jsonl")
    assert status == 1
    assert told["error"]


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_a_check_counts_the_lines_that_it_cannot_read(tmp_path, content):
    (tmp_path / "lines.jsonl").write_bytes(content)
    told, status = run("rubric_check", tmp_path / "lines.jsonl")
    assert (status, told["rubrics"]) == (0, 0)
    assert told["unreadable"]
