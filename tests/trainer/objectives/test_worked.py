"""The worked examples that the product shows are the current results of the calculator."""

import json

import pytest

from scripts.worked_examples import TARGET, record, worked
from trainer.config.objectives.catalogue import CATALOGUE, DIAGNOSTICS
from trainer.objectives.calculator import calculate

SHOWN = json.loads(TARGET.read_text())


def test_there_is_one_for_every_objective() -> None:
    assert set(SHOWN) == set(CATALOGUE) == set(worked())


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_numbers_are_those_of_the_calculator(name: str) -> None:
    assert SHOWN[name]["record"] == record(name)
    found = calculate(name, record(name))
    assert SHOWN[name]["result"]["loss"] == pytest.approx(found["loss"], rel=1e-12)
    assert json.loads(json.dumps(found)).keys() == SHOWN[name]["result"].keys()
    for key, value in found["diagnostics"].items():
        assert SHOWN[name]["result"]["diagnostics"][key] == pytest.approx(value, rel=1e-9, abs=1e-12)


def test_every_number_that_is_reported_is_explained() -> None:
    assert {key for each in SHOWN.values() for key in each["result"]["diagnostics"]} <= set(DIAGNOSTICS)
