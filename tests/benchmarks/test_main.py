"""All measurements in one table and one object, even if a single one fails."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as bench

TAKEN = {
    "ingest": {"ingest": {"ours": 4321, "peer": None, "unit": "events/s", "ratio": None}},
    "trainer": {"sampling": {"ours": 220.4, "peer": 110.2, "unit": "tokens/s", "ratio": 2.0}},
}


@pytest.fixture
def measured(monkeypatch):
    def measure(name, small):
        if name == "samplers":
            raise bench.NotTaken("was not measured here", failed=False)
        if name not in TAKEN:
            raise bench.NotTaken("failed with status 1")
        return TAKEN[name]

    monkeypatch.setattr(bench, "measure", measure)


@pytest.mark.usefixtures("measured")
class TestAll:
    def test_the_last_line_holds_every_result(self, capsys):
        assert bench.main(["ingest", "trainer"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert json.loads(lines[-1]) == TAKEN["ingest"] | TAKEN["trainer"]
        assert [line.split() for line in lines[-3:-1]] == [
            ["ingest", "4,321", "–", "–", "events/s"],
            ["sampling", "220.4", "110.2", "2.00", "tokens/s"],
        ]

    def test_a_measurement_that_fails_is_named_and_the_others_are_still_printed(self, capsys):
        assert bench.main(["launch", "ingest"]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert "launch failed" in lines[-2]
        assert json.loads(lines[-1]) == TAKEN["ingest"]

    def test_one_that_needs_what_is_not_there_is_named_and_is_no_failure(self, capsys):
        assert bench.main(["samplers", "ingest"]) == 0
        assert "samplers was not measured here" in capsys.readouterr().out.splitlines()[-2]

    def test_how_long_it_takes_is_said_first(self, capsys):
        bench.main(["ingest", "trainer"])
        assert "2 to measure, about 9 minutes" in capsys.readouterr().out.splitlines()[1]

    def test_small_numbers_are_never_shown_as_measurements(self, capsys):
        bench.main(["--small", "ingest"])
        assert "SMALL: these numbers say nothing" in capsys.readouterr().out

    def test_a_name_that_is_no_measurement_is_refused_with_those_there_are(self, capsys):
        with pytest.raises(SystemExit):
            bench.main(["rocket"])
        assert f"no measurement 'rocket'; there are {', '.join(bench.MODULES)}" in capsys.readouterr().err


def test_what_trains_is_taken_by_flag_or_name_and_left_out_otherwise(monkeypatch, capsys):
    taken = []
    monkeypatch.setattr(bench, "measure", lambda name, small: taken.append(name) or {})
    for arguments in ([], ["--results"], ["planted_bias"]):
        taken.append("|")
        assert bench.main(arguments) == 0
    everyday, results, named = " ".join(taken).split("|")[1:]
    assert results.split() == [
        "demo",
        "reward_models",
        "planted_bias",
        "hackable_proxy",
        "hacking",
        "hacking_trained",
        "second_act",
        "judged_rubrics",
    ]
    assert not set(everyday.split()) & set(results.split()) and "launch" in everyday
    assert named.split() == ["planted_bias"]


def test_every_module_that_prints_a_result_is_reachable():
    folder = Path(bench.__file__).parent
    printed = {path.stem for path in folder.glob("[a-z]*.py") if '"ratio": ' in path.read_text()}
    assert printed - set(bench.MODULES) == set()


class TestOne:
    def measure(self, monkeypatch, program: str) -> bench.Results:
        command = [sys.executable, "-c", program]
        monkeypatch.setattr(bench.Module, "command", lambda *_: command)
        return bench.measure("ingest")

    def test_its_last_line_is_its_result_and_the_others_are_shown(self, monkeypatch, capsys):
        found = self.measure(monkeypatch, f"print('a table'); print({json.dumps(TAKEN['ingest'])!r})")
        assert (found, capsys.readouterr().out) == (TAKEN["ingest"], "a table\n")

    @pytest.mark.parametrize("program", ["print('{'); raise SystemExit(3)", "print('no object')", "pass"])
    def test_a_failure_and_a_last_line_without_numbers_are_both_told(self, monkeypatch, program):
        with pytest.raises(bench.NotTaken) as told:
            self.measure(monkeypatch, program)
        assert told.value.failed

    def test_what_is_away_says_so_itself(self, monkeypatch, capsys):
        with pytest.raises(bench.NotTaken) as told:
            self.measure(monkeypatch, "from benchmarks.machine import away; away('vLLM is not installed')")
        assert not told.value.failed and "vLLM is not installed" in capsys.readouterr().out


@pytest.mark.parametrize("name", bench.MODULES)
def test_every_measurement_has_the_options_that_make_it_small(name):
    place = Path(bench.__file__).with_name(name)
    source = (place / "__main__.py" if place.is_dir() else place.with_suffix(".py")).read_text()
    module = bench.MODULES[name]
    assert module.small
    for option in (word for word in f"{module.small} {module.full}".split() if word.startswith("--")):
        assert f'add_argument("{option}"' in source.replace("add_argument(\n        ", "add_argument(")
