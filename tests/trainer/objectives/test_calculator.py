"""`python -m trainer objective NAME FILE.json` reads a file and prints JSON. For a wrong file it prints one line that names the field."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import fork_server
from trainer.config.objectives.catalogue import CATALOGUE
from trainer.objectives import REGISTRY, ObjectiveError
from trainer.objectives.calculator import calculate, main
from trainer.objectives.reading import KNOWN

GOOD: dict[str, Any] = {
    "logp": [[-1.0, -2.0], [-0.5]],
    "logp_old": [[-1.1, -2.0], [-0.6]],
    "logp_roll": [[-1.1, -2.1], [-0.6]],
    "rewards": [1, 0],
}


def write(tmp_path: Path, record: Any) -> str:
    path = tmp_path / "record.json"
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    return str(path)


def test_from_a_shell(tmp_path: Path) -> None:
    done = subprocess.run(
        [*fork_server.command(), "objective", "grpo", write(tmp_path, GOOD)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert list(found) == ["loss", "grad_logp", "advantages", "diagnostics"]
    assert found["advantages"] == [1, -1]
    assert [len(row) for row in found["grad_logp"]] == [2, 1]


def test_a_mask_may_hide_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = {
        **GOOD,
        "logp_old": [[-1.1, None], [-0.6]],
        "logp_roll": [[-1.1], [-0.6]],
        "mask": [[True, False], [1.0]],
    }
    assert main(["icepop", write(tmp_path, hidden)]) == 0
    assert json.loads(capsys.readouterr().out)["grad_logp"][0][1] == 0


def test_null_parameters_and_advantages_are_as_if_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for extra in ({}, {"advantages": None, "params": {"eps_low": None}, "mask": None, "groups": None}):
        assert main(["grpo", write(tmp_path, {**GOOD, **extra})]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_given_advantages_replace_the_estimator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grpo", write(tmp_path, {**GOOD, "advantages": [0.25, None]})]) == 0
    assert json.loads(capsys.readouterr().out)["advantages"] == [0.25, None]


def test_a_byte_order_mark_is_no_part_of_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grpo", write(tmp_path, "\ufeff" + json.dumps(GOOD))]) == 0
    assert json.loads(capsys.readouterr().out)["advantages"] == [1, -1]


def test_a_loss_of_nothing_is_zero_without_a_sign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grpo", write(tmp_path, {**GOOD, "rewards": [None, None]})]) == 0
    assert capsys.readouterr().out.startswith('{"loss": 0.0,')


def test_scores_may_stand_in_a_record_as_the_sides_of_dpo_do() -> None:
    """-log sigmoid(2 - 1 - 0.5) = log(1 + e^-0.5)."""
    record = {"chosen": {"rewards": [2.0]}, "rejected": {"rewards": [1.0]}, "params": {"margin": 0.5}}
    assert calculate("bradley_terry", record)["loss"] == pytest.approx(0.4740769841801067)


WRONG: list[tuple[str, Any, str]] = [
    ("nope", GOOD, "NAME: unknown objective 'nope'; known: grpo"),
    ("grpo", "{", "FILE: "),
    ("grpo", [1], "FILE: expected one JSON object"),
    ("grpo", {}, "logp: missing"),
    ("grpo", {"logp": []}, "logp: has no responses"),
    ("grpo", {"logp": [1, 2]}, "logp: expected a list of responses"),
    ("grpo", {**GOOD, "logp_odl": 1}, "logp_odl: unknown field"),
    ("grpo", {**GOOD, "logp_old": None}, "logp_old: missing"),
    ("grpo", {**GOOD, "logp_old": [[-1.1, -2.0]]}, "logp_old: has 1 responses, logp has 2"),
    ("grpo", {**GOOD, "logp_old": [[-1.1], [-0.6]]}, "logp_old[0][1]: missing"),
    ("grpo", {**GOOD, "logp_old": [[-1.1, -2], [-0.6, -1]]}, "logp_old[1]: has 2 tokens, logp has 1"),
    ("grpo", {**GOOD, "logp": [["a", -2.0], [-0.5]]}, "logp[0][0]: expected a number, found 'a'"),
    ("grpo", {**GOOD, "logp": [[True, -2.0], [-0.5]]}, "logp[0][0]: expected a number, found True"),
    ("grpo", '{"logp": [[NaN]], "rewards": [1]}', "logp[0][0]: expected a finite number"),
    ("grpo", '{"logp": [[-1e999]], "rewards": [1]}', "logp[0][0]: expected a finite number"),
    ("grpo", {**GOOD, "mask": [[1, 1], [1, 1]]}, "logp[1][1]: missing, although the mask counts this token"),
    ("grpo", {**GOOD, "mask": [[1, 0.5], [1]]}, "mask[0][1]: expected 0 or 1, found 0.5"),
    ("grpo", {**GOOD, "mask": [[1, 1]]}, "mask: has 1 responses, logp has 2"),
    ("grpo", {**GOOD, "rewards": None}, "rewards: missing"),
    ("grpo", {**GOOD, "rewards": [1]}, "rewards: has 1 values for 2 responses"),
    ("grpo", {**GOOD, "rewards": [1, "x"]}, "rewards[1]: expected a number, found 'x'"),
    ("grpo", {**GOOD, "groups": [0]}, "groups: expected a list of 2 prompt ids"),
    ("grpo", {**GOOD, "groups": [0, 1.5]}, "groups[1]: expected an integer or a string"),
    ("grpo", {**GOOD, "groups": [0, 1], "params": {"advantage": "leave_one_out"}}, "groups: response 0 is alone"),
    ("grpo", {**GOOD, "params": {"advantage": "remax"}}, "rewards_greedy: missing"),
    ("grpo", {**GOOD, "params": []}, "params: expected an object"),
    ("grpo", {**GOOD, "params": {"eps": 0.2}}, "params.eps: unknown here; known: "),
    ("grpo", {**GOOD, "params": {"eps_low": -0.1}}, "params.eps_low: "),
    ("grpo", {**GOOD, "params": {"eps_low": "0.1"}}, "params.eps_low: "),
    ("grpo", {**GOOD, "params": {"aggregation": "mean"}}, "params.aggregation: "),
    ("grpo", {**GOOD, "params": {"kl_beta": 0.1}}, "logp_ref: missing"),
    ("grpo", {**GOOD, "params": {"aggregation": "constant"}}, "params.max_tokens: needed"),
    ("dr_grpo", GOOD, "params.max_tokens: needed"),
    ("icepop", {**GOOD, "logp_roll": None}, "logp_roll: missing"),
    ("icepop", {**GOOD, "params": {"pop_low": 3.0}}, "params.pop_low: no ratio is in [3.0, 2.0]"),
    ("icepop", {**GOOD, "params": {"kl_beta": 0.1}}, "params.kl_beta: unknown here"),
    ("kimi", {**GOOD, "params": {"alpha": 1.0}}, "params.alpha: "),
    ("kimi", {**GOOD, "params": {"beta": 0.9}}, "params.beta: "),
    ("oapl", {**GOOD, "params": {"beta1": -1}}, "params.beta1: "),
    ("distill", GOOD, "logp_teacher: missing"),
    ("dpo", GOOD, "chosen: expected a list of rows of logp"),
    (
        "dpo",
        {**GOOD, "logp_ref": GOOD["logp"], "chosen": [0], "rejected": [2]},
        "rejected[0]: expected a row of logp, 0 to 1; found 2",
    ),
    ("dpo", {**GOOD, "chosen": [0], "rejected": [1]}, "chosen.logp_ref: missing"),
    ("dpo", {"chosen": {"logp": [[1]], "logp_old": [[1]]}, "rejected": {}}, "chosen.logp_old: unknown field"),
    ("dpo", {"chosen": {"logp": [[1]], "logp_ref": [[1]]}, "rejected": {"logp": 3}}, "rejected.logp: expected a list"),
    ("bradley_terry", {"chosen": [1, 2], "rejected": [1]}, "rejected: has 1 scores for 2 chosen"),
    ("bradley_terry", {"chosen": [1]}, "rejected: expected a list of scores"),
    ("bradley_terry", {"chosen": [1], "rejected": [None]}, "rejected[0]: expected a number, found None"),
]


@pytest.mark.parametrize(("name", "record", "message"), WRONG, ids=[case[2][:40] for case in WRONG])
def test_a_wrong_record_is_one_line_that_names_the_field(
    name: str, record: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, write(tmp_path, record)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"error: {message}")
    assert output.err.count("\n") == 1


LEGAL: list[tuple[str, dict[str, Any], float]] = [
    # One response in each group, without another to compare with: nothing to learn.
    ("grpo", {**GOOD, "groups": ["a", "b"]}, 0.0),
    # Groups of 2 and 1: the single one has advantage 0 and counts as a response: -(e^.1 + 1)/2 / 3 + e^.1 / 3.
    (
        "grpo",
        {"logp": [[-1.0, -2.0], [-0.5], [-1.0]], "logp_old": [[-1.1, -2.0], [-0.6], [-1.0]], "rewards": [1, 0, 1],
         "groups": [0, 0, 1]},
        (-(1.1051709180756477 + 1) / 2 + 1.1051709180756477) / 3,
    ),
    # A row without a token of the model is still a response: -(e^.1 + 1)/2 / 2.
    ("grpo", {**GOOD, "mask": [[1, 1], [0]]}, -(1.1051709180756477 + 1) / 4),
    # No token was generated.
    ("dapo", {**GOOD, "mask": [[0, 0], [0]]}, 0.0),
    ("grpo", {**GOOD, "logp": [[], [-0.5]], "logp_old": [[], [-0.5]], "logp_roll": None}, 0.5),
    # All rewards missing.
    ("grpo", {**GOOD, "rewards": [None, None]}, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "record", "loss"), LEGAL)
def test_what_is_odd_but_legal_has_its_value(name: str, record: dict[str, Any], loss: float) -> None:
    found = calculate(name, record)
    assert found["loss"] == pytest.approx(loss, abs=1e-12)
    assert [len(row) for row in found["grad_logp"]] == [len(row) for row in record["logp"]]


SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(width=32) | st.sampled_from(["a", "", 1e308, 10**400])
)
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KNOWN, "eps_low", "beta1"]), inner),
)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(list(REGISTRY)), st.dictionaries(st.sampled_from(KNOWN), NESTED, max_size=4))
def test_whatever_is_in_the_file_the_answer_is_json_or_one_sentence(name: str, changes: dict[str, Any]) -> None:
    record = {**GOOD, "logp_ref": GOOD["logp"], "logp_teacher": GOOD["logp"], "chosen": [0], "rejected": [1], **changes}
    try:
        json.dumps(calculate(name, record), allow_nan=False)
    except ObjectiveError as error:
        assert error.field and error.message and "\n" not in str(error)


@pytest.mark.parametrize("arguments", [[], ["grpo"], ["grpo", "a", "b"], ["grpo", "/no/such/file.json"]])
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_every_objective_of_the_catalogue_is_there_with_defaults_that_hold() -> None:
    assert list(REGISTRY) == list(CATALOGUE)
    for name, entry in CATALOGUE.items():
        constant = {"max_tokens": 8} if name == "dr_grpo" else {}
        params = REGISTRY[name].params(**constant)
        assert params == entry.parameters(**constant)
        for field in entry.parameters.model_fields.values():
            assert field.description


def test_the_catalogue_is_light() -> None:
    code = "import sys, trainer.config.objectives.catalogue; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
