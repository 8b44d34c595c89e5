"""Rare faults of responses: texts that have them and, equally important, texts that do not have them."""

import pytest

from trainer.selection import FAULTS

PROMPT = "Name three rivers."
CODE = "```python\nprint(1)\n```"


def fault_names(response: str, prompt: str = PROMPT) -> set[str]:
    return {name for name, has in FAULTS.items() if has(prompt, response)}


@pytest.mark.parametrize(
    "response",
    [
        "The Rhine, the 长江 and the Nile.",
        "Рейн течёт 北 через Европу",
        "ライン川 and река",
    ],
)
def test_a_script_that_nobody_asked_for_is_mixed_in(response: str) -> None:
    assert fault_names(response) == {"mixed scripts"}


@pytest.mark.parametrize(
    ("response", "prompt"),
    [
        ("Rhine, Danube, Nile.", PROMPT),
        ("长江、黄河、Rhine。", "说出三条河"),
        ("The Chinese name is 长江.", "What is 长江 in English?"),
        ("東京は日本の首都です。", "首都は?"),
        ("The angle α is 30°.", PROMPT),
        ("", PROMPT),
    ],
)
def test_names_and_what_was_asked_about_are_no_mixture(response: str, prompt: str) -> None:
    assert fault_names(response, prompt) == set()


@pytest.mark.parametrize(
    "response",
    [
        "la " * 40,
        "the river is long " * 8,
        "\n".join(["The Rhine is a river."] * 5),
        "我们我们我们我们我们我们我们我们我们我们我们我们",
    ],
)
def test_what_comes_again_and_again_is_repetition(response: str) -> None:
    assert "repetition" in fault_names(response)


@pytest.mark.parametrize(
    "response",
    [
        "very very very long",
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 1 | 2 |",
        "no\nno\nno\nno\nno",
        "1. Rhine\n2. Rhine\n3. Nile",
    ],
)
def test_emphasis_tables_and_short_lines_are_none(response: str) -> None:
    assert "repetition" not in fault_names(response)


@pytest.mark.parametrize("response", ["```python\nprint(1)", '{"a": 1,}', "<think>hm\nRhine", "</answer>Rhine"])
def test_what_is_left_open_is_broken(response: str) -> None:
    assert fault_names(response) == {"broken format"}


@pytest.mark.parametrize(
    "response", [CODE, '{"a": [1]}', "[see note]", "<think>hm</think>Rhine", "{", "a < b and b > c"]
)
def test_what_is_closed_is_not(response: str) -> None:
    assert fault_names(response) == set()
