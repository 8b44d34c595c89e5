"""IFBench (Pyatkin et al., 2025) and IFEval (Zhou et al., 2023): prompts with constraints that a program can check.

A constraint gets a verifier only if ours decides every text exactly as the benchmark's own checker does; all others are criteria in words.
If words are counted, the benchmark counts runs of letters, digits and underscores, which our word_count does not: a regular expression
does.

Results of a run hold a response and the verdicts of the benchmark's checkers.
"""

from collections.abc import Callable
from typing import Any

import regex

from webapp.files.records import BadRow, Row

from ..base_importer import Beside, Importer
from ..convert import Convert, Mapping
from ..fields import content_key, messages, not_given, remaining_fields
from .constraint_texts import TEXTS

TEST, STRICT = "IFBench_test.jsonl", "eval_results_strict.jsonl"
PROMPT, RESULT = {"prompt", "instruction_id_list", "kwargs"}, {"instruction_id_list", "follow_instruction_list"}
WORD, BETWEEN = r"[\p{L}\p{N}_]++", r"[^\p{L}\p{N}_]*+"
MOST_REPEATS = 999  # the verifier's limit for counted repetition
MULTIPLES = (14, 21, 28, 35, 42, 49)


def knows(row: Row) -> float:
    return 0.98 if row.keys() >= PROMPT or row.keys() >= RESULT else 0.0


def bind(beside: Beside) -> Convert:
    tests: dict[str, Row] = {}
    runs: dict[int, Row] = {}

    def arguments(prompt: Any) -> Row:
        """The arguments of the prompt's constraints, from the file of prompts; results hold none."""
        if not tests:
            tests.update({row["prompt"]: row for row in beside.rows(TEST) if row.keys() >= PROMPT} or {"": {}})
        return tests.get(prompt, {})

    def run(number: Any) -> Row:
        if not runs:
            runs.update(enumerate(beside.rows(STRICT)))
        return runs.get(number, {})

    def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
        if "kwargs" in row:
            return asked(row)
        given = {**run(row.get("i")), **row} if "prompt" not in row else row
        return answered(given, arguments(given.get("prompt")))

    return convert


def asked(row: Row) -> dict[str, Any]:
    prompt = messages(row.get("prompt"), "prompt")
    ids, kwargs = _instructions(row)
    return {
        "key": str(row.get("key", content_key(prompt, ids, kwargs))),
        "prompt": prompt,
        "source": "IFBench",
        "domain": ids[0].split(":")[0],
        "tags": list(dict.fromkeys(ids)),
        "rubric": {"criteria": [criterion(i, *pair) for i, pair in enumerate(zip(ids, kwargs, strict=True), 1)]},
        "meta": remaining_fields(row, PROMPT | {"key"}) | {"kwargs": kwargs},
    }


def answered(row: Row, test: Row) -> dict[str, Any]:
    """A response with the checkers' verdicts. Its key has a mark, because a response is not the prompt."""
    if "prompt" not in row:
        row = {**row, "prompt": not_given(f"prompt and response {row.get('i')}", STRICT)}
    ids, kwargs = _instructions({**row, "kwargs": test.get("kwargs")})
    data = asked({**row, "kwargs": kwargs})
    followed = row["follow_instruction_list"]
    if not isinstance(followed, list) or len(followed) != len(ids):
        raise BadRow("follow_instruction_list", f"must have {len(ids)} truth values, one for each instruction")
    verdicts = [{"criterion_id": f"c{i}", "met": met, "source": "verifier"} for i, met in enumerate(followed, 1)]
    response = row.get("response")
    return data | {
        "key": f"run-{content_key(data['prompt'], ids, response)}" if response is not None else f"run-{row.get('i')}",
        "responses": [{"id": "r1", "text": response}] if response is not None else [],
        "meta": remaining_fields(row, RESULT | {"prompt", "response", "kwargs"})
        | {"kwargs": kwargs, "verdicts": [{"response": "r1", "rater": "IFBench checkers", "verdicts": verdicts}]},
    }


def _instructions(row: Row) -> tuple[list[str], list[Row]]:
    """Ids and arguments, without the empty ones that the file pads them with."""
    ids, kwargs = row.get("instruction_id_list"), row.get("kwargs")
    if not isinstance(ids, list) or not ids or not all(isinstance(id, str) for id in ids):
        raise BadRow("instruction_id_list", "must be a list of ids with at least one")
    if kwargs is None:
        kwargs = [{} for _ in ids]
    if not isinstance(kwargs, list) or len(kwargs) != len(ids) or not all(isinstance(k, dict | None) for k in kwargs):
        raise BadRow("kwargs", f"must be a list of {len(ids)} objects, one for each instruction")
    return ids, [{name: value for name, value in (each or {}).items() if value is not None} for each in kwargs]


def criterion(number: int, id: str, kwargs: Row) -> Row:
    """The criterion in words, with a verifier if ours decides exactly as the benchmark does."""
    found = {"id": f"c{number}", "text": words(id, kwargs), "points": 1, "kind": "hard", "tags": [id]}
    spec = EXACT[id](kwargs) if id in EXACT else None
    return found | ({"verifier": {"name": "regex", "args": spec}} if spec else {})


def words(id: str, kwargs: Row) -> str:
    shown = {name: _shown(value) for name, value in kwargs.items()}
    try:
        return TEXTS[id].format(**shown)
    except KeyError:  # a constraint for which we have no words, or whose arguments the file does not give
        given = ", ".join(f"{name} = {value}" for name, value in shown.items())
        known = TEXTS[id].split("{")[0].rstrip(" “") + " … (see the prompt)." if id in TEXTS else ""
        return known or f"Meets the constraint {id}" + (f" with {given}." if given else ".")


def _shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value == int(value) >= 0 else None


def _between(kwargs: Row) -> Row | None:
    return _words(_whole(kwargs.get("min_words")), _whole(kwargs.get("max_words")))


def _relation(kwargs: Row) -> Row | None:
    number = _whole(kwargs.get("num_words"))
    if number is None or number < 1:
        return None
    known: dict[Any, tuple[int, int | None]] = {"at least": (number, None), "less than": (0, number - 1)}
    bounds = known.get(kwargs.get("relation"))
    return _words(*bounds) if bounds else None


def _words(least: int | None, most: int | None) -> Row | None:
    """A pattern for texts with this many words; None if the verifier cannot count that far."""
    if least is None or max(least, most or 0) > MOST_REPEATS:
        return None
    upper = "" if most is None else most
    return {"pattern": rf"\A{BETWEEN}(?:{WORD}{BETWEEN}){{{least},{upper}}}\Z"}


def _twice(kwargs: Row) -> Row | None:
    mark = kwargs.get("sep")
    if not isinstance(mark, str) or not mark.strip() or mark != mark.strip():
        return None
    escaped = regex.escape(mark)
    return {"pattern": f"{escaped}.*{escaped}", "dot_all": True}


EXACT: dict[str, Callable[[Row], Row | None]] = {
    "count:word_count_range": _between,
    "length_constraints:number_words": _relation,
    "format:list": _twice,
    "custom:multiples": lambda kwargs: {"pattern": r"\A\D*" + r"\D+".join(map(str, MULTIPLES)) + r"\D*\Z"},
    "punctuation:no_comma": lambda kwargs: {"pattern": ",", "expect": "no_match"},
}

IMPORTER = Importer(
    name="ifbench",
    label="IFBench and IFEval constraints",
    help="Prompts with instruction_id_list and kwargs; or responses with follow_instruction_list.",
    knows=knows,
    bind=bind,
    aside=lambda row: "kwargs" not in row,
)
