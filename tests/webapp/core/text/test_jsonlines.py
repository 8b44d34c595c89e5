"""JSON of the command line. Printed JSON can be read again, and a broken line is reported with its place."""

import json
from pathlib import Path
from typing import Any

from webapp.core.text.jsonlines import Lines, as_json_text
from webapp.judging.lines.fields import LineProblem


def test_what_is_printed_is_readable_and_can_be_written_anywhere() -> None:
    assert as_json_text({"judge": "裁判"}) == '{"judge": "裁判"}'
    half: dict[str, Any] = {"judge": "裁判 \ud800"}
    assert as_json_text(half).encode()
    assert json.loads(as_json_text(half)) == half


def test_a_line_that_is_no_json_says_at_which_column(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"a":\r\n\xff\r\n')
    lines = Lines(file, lambda row: row, LineProblem)
    assert list(lines) == [(1, {"a": 1})]
    assert lines.problems.told == [
        f"{file}, line 3: not JSON: Expecting value at column 8",
        f"{file}, line 4: is not UTF-8 text: invalid start byte",
    ]
