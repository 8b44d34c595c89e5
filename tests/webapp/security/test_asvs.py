"""docs/asvs.md has each requirement of levels 1 and 2 of ASVS 5.0.0 once, and names tests that exist."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCS, TESTS = ROOT / "docs", ROOT / "tests"
PAGE = (DOCS / "asvs.md").read_text()
# section -> numbers of its requirements of level 1, numbers of those of level 2
REQUIRED = {
    "1.1": ((), (1, 2)), "1.2": ((1, 2, 3, 4, 5), (6, 7, 8, 9)), "1.3": ((1, 2), (3, 4, 5, 6, 7, 8, 9, 10, 11)),
    "1.4": ((), (1, 2, 3)), "1.5": ((1,), (2,)),
    "2.1": ((1,), (2, 3)), "2.2": ((1, 2), (3,)), "2.3": ((1,), (2, 3, 4)), "2.4": ((), (1,)),
    "3.2": ((1, 2), ()), "3.3": ((1,), (2, 3, 4)), "3.4": ((1, 2), (3, 4, 5, 6)), "3.5": ((1, 2, 3), (4, 5)), "3.7": ((), (1, 2)),
    "4.1": ((1,), (2, 3)), "4.2": ((), (1,)), "4.3": ((), (1, 2)), "4.4": ((1,), (2, 3, 4)),
    "5.1": ((), (1,)), "5.2": ((1, 2), (3,)), "5.3": ((1, 2), ()), "5.4": ((), (1, 2, 3)),
    "6.1": ((1,), (2, 3)), "6.2": ((1, 2, 3, 4, 5, 6, 7, 8), (9, 10, 11, 12)), "6.3": ((1, 2), (3, 4)), "6.4": ((1, 2), (3, 4)),
    "6.5": ((), (1, 2, 3, 4, 5)), "6.6": ((), (1, 2, 3)), "6.8": ((), (1, 2, 3, 4)),
    "7.1": ((), (1, 2, 3)), "7.2": ((1, 2, 3, 4), ()), "7.3": ((), (1, 2)), "7.4": ((1, 2), (3, 4, 5)), "7.5": ((), (1, 2)), "7.6": ((), (1, 2)),
    "8.1": ((1,), (2,)), "8.2": ((1, 2), (3,)), "8.3": ((1,), ()), "8.4": ((), (1,)),
    "9.1": ((1, 2, 3), ()), "9.2": ((1,), (2, 3, 4)),
    "10.1": ((), (1, 2)), "10.2": ((), (1, 2)), "10.3": ((), (1, 2, 3, 4)), "10.4": ((1, 2, 3, 4, 5), (6, 7, 8, 9, 10, 11)),
    "10.5": ((), (1, 2, 3, 4, 5)), "10.6": ((), (1, 2)), "10.7": ((), (1, 2, 3)),
    "11.1": ((), (1, 2)), "11.2": ((), (1, 2, 3)), "11.3": ((1, 2), (3,)), "11.4": ((1,), (2, 3, 4)), "11.5": ((), (1,)), "11.6": ((), (1,)),
    "12.1": ((1,), (2, 3)), "12.2": ((1, 2), ()), "12.3": ((), (1, 2, 3, 4)),
    "13.1": ((), (1,)), "13.2": ((), (1, 2, 3, 4, 5)), "13.3": ((), (1, 2)), "13.4": ((1,), (2, 3, 4, 5)),
    "14.1": ((), (1, 2)), "14.2": ((1,), (2, 3, 4)), "14.3": ((1,), (2, 3)),
    "15.1": ((1,), (2, 3)), "15.2": ((1,), (2, 3)), "15.3": ((1,), (2, 3, 4, 5, 6, 7)),
    "16.1": ((), (1,)), "16.2": ((), (1, 2, 3, 4, 5)), "16.3": ((), (1, 2, 3, 4)), "16.4": ((), (1, 2, 3)), "16.5": ((), (1, 2, 3)),
    "17.1": ((), (1,)), "17.2": ((), (1, 2, 3, 4)), "17.3": ((), (1, 2)),
}  # fmt: skip
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if re.match(r"\| V\d", line)
]


def levels() -> dict[str, str]:
    return {
        f"V{section}.{number}": str(level)
        for section, both in REQUIRED.items()
        for level, numbers in enumerate(both, 1)
        for number in numbers
    }


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as links call them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_each_requirement_stands_once_with_its_level():
    assert Counter(levels().values()) == {"1": 70, "2": 183}
    assert [line[0] for line in LINES if len(line) != 5] == []
    assert Counter(line[0] for line in LINES) == Counter(levels().keys())
    assert {line[0]: line[1] for line in LINES} == levels()


def test_a_line_that_holds_names_a_test_and_every_line_says_why():
    assert {line[2] for line in LINES} <= {"holds", "in part", "no", "n/a"}
    assert [line[0] for line in LINES if line[2] == "holds" and "::" not in line[4]] == []
    assert [line[0] for line in LINES if line[2] in ("n/a", "no") and line[4]] == []
    assert [line[0] for line in LINES if len(line[3]) < 3] == []


def test_the_page_counts_right():
    told = dict(re.findall(r"^\| ([a-z/ ]+) \| (\d+) \|", PAGE, re.M))
    assert {name: int(count) for name, count in told.items()} == Counter(line[2] for line in LINES)


def test_every_test_that_is_named_exists():
    named = {name for line in LINES for name in re.findall(r"`([\w/.]+)::(\w+)`", line[4])}
    assert len(named) > 100
    gone = [each for each in named if not re.search(rf"^(async )?def {each[1]}\b", read(each[0]), re.M)]
    assert gone == []


def read(path: str) -> str:
    file = TESTS / path
    return file.read_text() if file.exists() else ""


def test_what_the_page_points_at_is_there():
    links = [link for line in LINES for link in re.findall(r"\]\(([^)]+)\)", line[3])]
    assert links
    for link in links:
        path, _, anchor = link.partition("#")
        assert (DOCS / path).exists(), link
        assert not anchor or anchor in anchors(DOCS / path), link


CRYPTOGRAPHY = re.compile(r"^\s*(?:from|import) (?:cryptography|hmac)\b|deferred import jwt|salted_hmac|Argon2", re.M)
# these check the signature of a webhook of the same contract, and that of the company's provider
OTHERS_KEYS = {"trainer/rewards/signing.py", "webapp/identity/provider.py"}


def sources() -> list[Path]:
    found = [path for folder in ("webapp", "workers", "trainer") for path in (ROOT / folder).rglob("*.py")]
    return [path for path in found if "migrations" not in path.parts]


def test_every_key_of_the_inventory_is_where_it_says():
    """Every key of the inventory is there, and no other code seals, signs or hashes passwords."""
    security = (DOCS / "security.md").read_text()
    told = set(re.findall(r"`((?:webapp|trainer)/[\w/]+\.py)`", security))
    assert [path for path in told if not (ROOT / path).exists()] == []
    uses = {str(path.relative_to(ROOT)) for path in sources() if CRYPTOGRAPHY.search(path.read_text())}
    assert uses - told - OTHERS_KEYS == set()


@pytest.mark.parametrize(
    "weak", [r"\bmd5\b", r"\bsha1\b", r"\bECB\b", r"PKCS1v15", r"\bDES3?\b", r"\bARC4\b", r"verify=False"]
)
def test_no_weak_cipher_or_hash_is_used(weak):
    assert [str(path) for path in sources() if re.search(weak, path.read_text())] == []


def test_time_frames_are_written_down():
    assert len(re.findall(r"within \d+ days", (ROOT / "SECURITY.md").read_text())) >= 2
