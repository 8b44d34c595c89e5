"""Stored points have one writer and one module of reads. No other module knows how the database stores them."""

import re

from tests.architecture import sources

DOOR = {"points.py", "sql.py", "writing.py", "models.py"}
TOUCHES = re.compile(
    r"\b(MetricPoint|MetricStretch|experiments_(metric)?point|experiments_metricstretch|run__points|run__stretches)\b"
    r"|\brun\.(points|stretches)\b|\bmodels import .*\bPoint\b"
)


def test_only_their_own_modules_touch_the_rows_of_points():
    room = sources.ROOT / "webapp" / "experiments"
    doors = {room / "metrics" / name for name in DOOR}
    found = [
        f"{path.relative_to(sources.ROOT)}:{number}"
        for folder in ("webapp", "workers")
        for path in sorted((sources.ROOT / folder).rglob("*.py"))
        if path not in doors and path != room / "models.py" and "migrations" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if TOUCHES.search(line)
    ]
    assert found == []
    assert all(TOUCHES.search(path.read_text()) for path in doors), "a module of the door that knows nothing of them"
