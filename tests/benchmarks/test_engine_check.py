"""A measurement of many starts continues at the start where it was stopped."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks import engine_check
from benchmarks.engine_check import EngineSetting, Outcomes, faulty, healthy


@pytest.fixture
def started_seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds of the starts that were really made. The start with seed 1 is stopped."""
    seeds: list[int] = []

    def outcome(setting: EngineSetting, seed: int, fault: Any = None, lr: float = 0.0) -> tuple[str, str]:
        seeds.append(seed)
        return ("caught at 1" if seed == 1 else "passed", "said")

    monkeypatch.setattr(engine_check, "outcome", outcome)
    return seeds


def test_starts_that_were_kept_are_counted_and_not_made_again(tmp_path: Path, started_seeds: list[int]) -> None:
    setting, kept = EngineSetting(tmp_path / "tiny", "bfloat16"), tmp_path / "kept.jsonl"
    healthy(Outcomes(setting, kept), 2)
    assert healthy(Outcomes(setting, kept), 3) == {"passed": 2, "caught at 1": 1}
    assert started_seeds == [0, 1, 2]


def test_starts_of_another_setting_do_not_count(tmp_path: Path, started_seeds: list[int]) -> None:
    kept = tmp_path / "kept.jsonl"
    healthy(Outcomes(EngineSetting(tmp_path / "tiny", "bfloat16"), kept), 2)
    healthy(Outcomes(EngineSetting(tmp_path / "tiny", "bfloat16", top_p=1.0), kept), 2)
    assert started_seeds == [0, 1, 0, 1]


def test_no_row_is_printed_of_faults_that_nobody_tried(tmp_path: Path, started_seeds: list[int]) -> None:
    assert faulty(Outcomes(EngineSetting(tmp_path / "tiny", "bfloat16"), None), 0) == {}
