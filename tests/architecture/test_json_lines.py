"""JSON Lines are read by `trainer.contracts.jsonlines`: `str.splitlines` would cut a text at U+2028, which a model or a fuzz may write."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
JSON = re.compile(r"json\.loads|model_validate_json|\.jsonl\"")
CUT = re.compile(r"(read_text\([^()]*\)|decode\(\)|\.out|\.output|\.stdout|\.stderr|\.text)\.splitlines\(\)(?!\[-1\])")


def cut(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if JSON.search(line) and CUT.search(line)]


def test_nobody_cuts_texts_within_json_lines():
    listed = subprocess.run(["git", "ls-files", "-z", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
    found = {str(path.relative_to(ROOT)): cut(path.read_text()) for path in files if path.name != Path(__file__).name}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_reading_that_cuts_is_noticed():
    assert cut("rows = [json.loads(line) for line in path.read_text().splitlines()]\n")
    assert cut('lines = (out / "events.jsonl").read_text(encoding="utf-8").splitlines()\n')
    assert not cut("last = json.loads(done.stdout.splitlines()[-1])\n")  # the output of the test's own program
