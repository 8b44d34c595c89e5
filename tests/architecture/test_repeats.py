"""Code of the program and of its tests that is in two places: six lines of code or more, the same to the letter. Each pair of files is gone
or has its reason here.

Comments, blank lines, imports and lines without a word do not count, and neither does white space. In templates, lines that only
close something, or open a block or an element without attributes, do not count either.

Two shorter repeats in templates are left on purpose. Dialogs that ask before a removal have the same frame of four lines, but each stays whole
in its template: `tests/webapp/security/test_questions.py` reads from a template which form a button belongs to and whether a dialog is
around it, and could not do so for a form whose address is a parameter. The tables of lists (datasets, models, endpoints, judges) share
the four lines with which a table begins: their columns differ, and an include would take as many lines.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from .sources import ROOT

LINES = 6
FOLDERS = ("webapp", "workers", "trainer", "client", "scripts", "benchmarks", "demo", "templates", "tests")
LEFT_OUT = ("/migrations/", "/vendor/", "client/touchstone/api/")  # the last is made by scripts/client.py
BARE = r"(?:</?[\w-]+>|\{% (?:end\w+(?: \w+)?|block \w+|else|empty) %\}|\W)*"

SIGNATURE = "a class repeats the signature that its protocol or base class declares"
POLICY = "each app says in one file whom it lets read and write; another app may decide otherwise"
API = "what the API answers or takes is written down apart from what the server holds, and changes by itself"
ARGUED = {
    ("trainer/inference/local.py", "trainer/inference/shared_sampler.py"): SIGNATURE,
    ("trainer/inference/shared_sampler.py", "trainer/inference/vllm/sampler.py"): SIGNATURE,
    ("trainer/inference/local.py", "trainer/inference/vllm/sampler.py"): SIGNATURE,
    ("trainer/inference/vllm/sampler.py", "trainer/inference/vllm/v0_32.py"): SIGNATURE,
    ("trainer/inference/vllm/v0_32.py", "trainer/inference/vllm/v0_32.py"): SIGNATURE,
    ("trainer/loops/policy/update.py", "trainer/runners/ray_learner.py"): SIGNATURE,
    ("trainer/loops/recipes/distill.py", "trainer/loops/recipes/policy.py"): SIGNATURE,
    (
        "webapp/weights/services.py",
        "webapp/weights/services.py",
    ): "two jobs with the same inputs, each with its own signature",
    ("webapp/annotation/access.py", "webapp/datasets/access.py"): POLICY,
    ("webapp/annotation/access.py", "webapp/judging/access.py"): POLICY,
    ("webapp/datasets/access.py", "webapp/judging/access.py"): POLICY,
    ("webapp/inference/endpoints/api.py", "webapp/inference/endpoints/queries.py"): API,
    ("webapp/inference/endpoints/api.py", "webapp/inference/endpoints/services.py"): API,
    ("trainer/config/metrics/preferences.py", "trainer/config/recipes/iterative_dpo.py"): (
        "declarations of two metrics, whose helps and titles differ"
    ),
    ("webapp/backups/models.py", "webapp/datasets/models.py"): (
        "the states of two tables, which change with the migrations of each"
    ),
    ("templates/judging/judges.html", "templates/models/endpoints.html"): "two lists whose first two columns are alike",
}


def _code(path: Path) -> list[str]:
    """The lines of a file that are compared."""
    found, importing = [], False
    for raw in path.read_text().split("\n"):
        line = " ".join(raw.split())
        if path.suffix == ".py":
            if importing:
                importing = not line.startswith(")")
                continue
            if re.match(r"(from \S+ )?import ", line):
                importing = line.endswith("(")
                continue
        if path.suffix == ".html" and re.fullmatch(BARE, line):
            continue
        if re.search(r"\w", line) and not line.startswith(("#", "//", "{#")):
            found.append(line)
    return found


def _files() -> Iterator[Path]:
    for folder in FOLDERS:
        for suffix in (".py", ".js", ".css", ".html"):
            for path in sorted((ROOT / folder).rglob(f"*{suffix}")):
                if not any(part in path.as_posix() for part in LEFT_OUT):
                    yield path


def repeats(sources: dict[str, list[str]]) -> dict[tuple[str, str], list[str]]:
    """The pairs of files (also a file with itself), each with the first run of lines that both contain."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, lines in sources.items():
        for start in range(len(lines) - LINES + 1):
            places[tuple(lines[start : start + LINES])].append((name, start))
    found: dict[tuple[str, str], list[str]] = {}
    for run, where in places.items():
        for (one, first), (other, second) in combinations(where, 2):
            if one != other or second - first >= LINES:
                found.setdefault((min(one, other), max(one, other)), list(run))
    return found


def test_what_stands_in_two_places_has_a_reason() -> None:
    found = repeats({str(path.relative_to(ROOT)): _code(path) for path in _files()})
    new = {pair: run for pair, run in found.items() if pair not in ARGUED}
    assert not new, "the same lines in two places: put them in one, or argue in ARGUED"
    assert not ARGUED.keys() - found.keys(), "these no longer repeat each other: take them off ARGUED"


def test_a_run_of_six_lines_is_found_and_one_of_five_is_not() -> None:
    lines = [f"line {number}" for number in range(7)]
    assert repeats({"a": lines, "b": ["other", *lines[:6]]}) == {("a", "b"): lines[:6]}
    assert repeats({"a": lines, "b": ["other", *lines[:5], "end"]}) == {}
    assert repeats({"a": [*lines, "between", *lines]}) == {("a", "a"): lines[:6]}
    assert repeats({"a": ["same"] * 8}) == {}, "a run does not repeat itself where it overlaps itself"


def test_lines_of_templates_that_only_close_something_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<tr>\n  <td>{{ a }}</td>\n</tr>\n{% endfor %}</tbody>\n{# why #}\n<tr data-a>\n")
    assert _code(tmp_path / "a.html") == ["<td>{{ a }}</td>", "<tr data-a>"]
