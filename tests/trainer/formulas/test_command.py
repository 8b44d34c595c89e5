"""`python -m trainer formula` reads a file and prints one JSON object. For bad input it prints one line that names the field."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.formulas import FORMULAS, InputInvalid
from trainer.formulas.command import main

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = re.compile(
    r"^    \$ echo '(?P<record>.*)' \| python -m trainer formula (?P<name>\w+) -\n    (?P<output>.*)$", re.M
)
DOCS = (ROOT / "docs" / "formulas.md").read_text()
EXAMPLES = [(found["name"], found["record"], found["output"]) for found in EXAMPLE.finditer(DOCS)]
GOOD = {name: json.loads(record) for name, record, _ in reversed(EXAMPLES)}


def value(name: str, **record: Any) -> Any:
    """The value of a formula, or None if it is undefined (the output then has the reason)."""
    found = FORMULAS[name].evaluate(record)
    assert found["value"] is not None or found["why"]
    return found["value"]


def problem(name: str, record: Any) -> str:
    with pytest.raises(InputInvalid) as caught:
        FORMULAS[name].evaluate(record)
    return caught.value.problem


def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainer", "formula", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize(("name", "record", "output"), EXAMPLES)
def test_the_examples_of_the_docs(name, record, output) -> None:
    assert json.dumps(FORMULAS[name].evaluate(json.loads(record))) == output


def test_the_docs_have_every_formula_in_order_with_its_inputs_and_an_example() -> None:
    headings = re.findall(r"^### (.*)$", DOCS, re.M)
    assert headings == [each.usage() for each in FORMULAS.values()]
    assert {name for name, _, _ in EXAMPLES} == FORMULAS.keys()


def test_from_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text('\ufeff{"given": "A", "swapped": "B"}')
    done = run("swap_consistent", str(path))
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"value": "A"}\n', "")


def test_from_standard_input_with_a_reason_where_there_is_no_value() -> None:
    done = run("cohens_d", "-", given='{"chosen": [1], "rejected": [0]}')
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"value": None, "why": "1 pair with both scores; a spread needs two"}


def test_alone_it_lists_every_formula() -> None:
    done = run()
    assert done.returncode == 0
    for each in FORMULAS.values():
        assert f"\n{each.usage()}\n    {each.summary}\n" in done.stdout
        assert len(each.summary) > 20


def test_it_loads_no_torch() -> None:
    code = (
        "import sys\nfrom trainer.formulas.command import main\nmain(['cohens_d', '-'])\n"
        "assert not {'torch', 'ray', 'transformers', 'django'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(GOOD["cohens_d"]), capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "content", "said"),
    [
        (["nope", "-"], "{}", "NAME: unknown formula 'nope'; known: "),
        (["cohens_d"], "", "arguments: expected NAME and FILE, found 1"),
        (["cohens_d", "absent.json"], "", "FILE: cannot read 'absent.json': No such file or directory"),
        (["cohens_d", "-"], "{", "FILE: '-' is not JSON"),
        (["cohens_d", "-"], "[" * 100_000, "FILE: '-' is not JSON"),
        (["cohens_d", "-"], "[]", "FILE: expected one JSON object"),
        (["cohens_d", "-"], '{"chosen": [], "rejected": [], "chosen": [1]}', "chosen: is twice in one object"),
        (["cohens_d", "-"], '{"chosen": [NaN], "rejected": [0]}', "chosen[0]: input should be a finite number"),
        (["cohens_d", "-"], '{"chosen": [1e999], "rejected": [0]}', "chosen[0]: input should be a finite number"),
        (["cohens_d", "-"], '{"chosen": ["1"], "rejected": [0]}', "chosen[0]: input should be a valid number"),
        (
            ["cohens_d", "-"],
            '{"chosen": [true], "rejected": [0]}',
            "chosen[0]: input should be a valid number, found true",
        ),
        (
            ["ahrl", "-"],
            '{"p0": 1, "gamma": 1, "t": 1, "pass0": null}',
            "pass0: input should be a valid number, found null",
        ),
        (
            ["ahrl", "-"],
            '{"p0": 1, "gamma": 1, "t": 1, "pass0": NaN}',
            "pass0: input should be a finite number, found NaN",
        ),
        (
            ["kcenter", "-"],
            '{"embeddings": [], "ppl": [], "k": 1}',
            "embeddings: is empty; expected at least 1; ppl: is empty; expected at least 1",
        ),
        (["cohens_d", "-"], '{"chosen": [1]}', "rejected: missing"),
        (
            ["cohens_d", "-"],
            '{"chosen": [1], "rejected": [0], "a\\nb": 1}',
            "a b: unknown input; known: chosen, rejected",
        ),
        (["cohens_d", "-"], '{"chosen": [1], "rejected": []}', "rejected: has 0 entries, chosen has 1"),
    ],
)
def test_bad_input_is_one_line_that_names_the_field(arguments, content, said, capsys, monkeypatch, tmp_path) -> None:
    if arguments[-1] == "-":
        (tmp_path / "record.json").write_text(content)
        arguments = [arguments[0], str(tmp_path / "record.json")]
        said = said.replace("'-'", repr(arguments[1]))
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"error: {said}") and err.count("\n") == 1


@pytest.mark.parametrize("name", FORMULAS)
def test_every_input_is_named_when_it_is_absent_unknown_or_of_another_type(name) -> None:
    for field, declared in FORMULAS[name].inputs.model_fields.items():
        rest = {key: given for key, given in GOOD[name].items() if key != field}
        if declared.is_required():
            assert problem(name, rest).startswith(f"{field}: missing")
        own = get_origin(declared.annotation) or declared.annotation
        for wrong in ({}, [[[]]], float("nan"), "?"):
            if type(wrong) is own and own in (str, dict):
                continue  # it has the right type, so it is a valid value
            assert problem(name, {**rest, field: wrong}).startswith(field)
    assert problem(name, {**GOOD[name], "stranger": 1}).startswith("stranger: unknown input")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)


@pytest.mark.parametrize("name", FORMULAS)
@given(data=st.data())
def test_whatever_the_inputs_it_answers_or_names_a_field(name, data) -> None:
    fields = list(FORMULAS[name].inputs.model_fields)
    changed = data.draw(st.sampled_from(fields))
    try:
        found = FORMULAS[name].evaluate({**GOOD[name], changed: data.draw(anything)})
    except InputInvalid as error:
        assert error.problem.partition(":")[0].partition("[")[0].partition(".")[0] in fields
    else:
        json.dumps(found, allow_nan=False)
        assert found["value"] is not None or found["why"]
