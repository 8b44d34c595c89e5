"""All measurements in one table and one object, whatever becomes of a single one."""

import json

import pytest

from benchmarks import __main__ as bench

TAKEN = {
    "ingest": {"ingest": {"ours": 4321, "peer": None, "unit": "events/s", "ratio": None}},
    "trainer": {"sampling": {"ours": 220.4, "peer": 110.2, "unit": "tokens/s", "ratio": 2.0}},
}


@pytest.fixture(autouse=True)
def measured(monkeypatch):
    monkeypatch.setattr(bench, "measure", TAKEN.get)


def test_the_last_line_holds_every_result(capsys):
    assert bench.main(["ingest", "trainer"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[-1]) == TAKEN["ingest"] | TAKEN["trainer"]
    assert [line.split() for line in lines[-3:-1]] == [
        ["ingest", "4,321", "–", "–", "events/s"],
        ["sampling", "220.4", "110.2", "2.00", "tokens/s"],
    ]


def test_a_measurement_that_fails_is_named_and_the_others_are_still_printed(capsys):
    assert bench.main(["launch", "ingest"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "launch failed" in lines[-2]
    assert json.loads(lines[-1]) == TAKEN["ingest"]


def test_a_name_that_is_no_measurement_is_refused_with_those_there_are(capsys):
    with pytest.raises(SystemExit):
        bench.main(["rocket"])
    assert f"no measurement 'rocket'; there are {', '.join(bench.MODULES)}" in capsys.readouterr().err
