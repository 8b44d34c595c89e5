"""Lines of JSON: only a newline ends a line, although other characters do elsewhere."""

import json

import pytest

from trainer.contracts import jsonlines


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\r", "\x0b", "\x1e"])
def test_only_a_line_feed_ends_a_line(character: str) -> None:
    said = [{"text": f"one{character}two"}, {"text": character}]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in said)
    assert jsonlines.rows(text) == said
    assert jsonlines.rows(f"\n{text}\r\n") == said, "blank lines are none"


def test_what_is_no_json_raises() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        jsonlines.rows('{"a": 1}\n{"a": \n')
