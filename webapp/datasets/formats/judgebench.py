"""JudgeBench (Tan et al., 2024): pairs with a right or wrong label, and judges' decisions in both orders.

There are three kinds of rows: pairs, recorded decisions and rationales. The last two name a pair by its id; the texts come from the files
of pairs
beside them. `decision_BA` is given in swapped order and is turned back here.
"""

from collections import defaultdict
from typing import Any

from webapp.files.records import Row

from .base_importer import Beside, Importer
from .convert import Convert, Mapping
from .fields import messages, not_given, one_of, remaining_fields, text_of

PAIRS = ("pairs_gpt4o.jsonl", "pairs_claude.jsonl")
DECISIONS = "judgments.jsonl"
STRENGTH = {"A>B": -2, "B>A": 2, "A=B": 0, None: None}
PAIR = {"pair_id", "response_A", "response_B"}
DECISION = {"pair_id", "decision_AB", "decision_BA"}
RATIONALE = {"pair_id", "rationale_AB", "rationale_BA"}


def knows(row: Row) -> float:
    return 0.98 if any(kind <= row.keys() for kind in (PAIR, DECISION, RATIONALE)) else 0.0


def aside(row: Row) -> bool:
    return "pair_id" in row and "response_A" not in row


def bind(beside: Beside) -> Convert:
    """The converter of one file; it reads the files beside it when a row first needs them."""
    pairs: dict[str, Row] = {}
    decisions: dict[str, list[Row]] = {}

    def decided(pair_id: str) -> list[Row]:
        if not decisions:
            decisions.update(by_pair(beside))
        return decisions.get(pair_id, [])

    def found(pair_id: str) -> Row:
        if not pairs:
            pairs.update((row["pair_id"], row) for name in PAIRS for row in beside.rows(name) if row.keys() >= PAIR)
        return pairs.get(pair_id, {})

    def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
        pair_id = text_of(row, "pair_id")
        if "response_A" in row:
            return of_pair(row, decided(pair_id) if beside.together else [])
        if "decision_AB" in row:
            return of_decision(row, found(pair_id))
        return of_rationale(row, found(pair_id), decided(pair_id))

    return convert


def by_pair(beside: Beside) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in beside.rows(DECISIONS):
        grouped[row.get("pair_id", "")].append(row)
    return grouped or {"": []}


def of_pair(row: Row, decisions: list[Row]) -> dict[str, Any]:
    data = _shown(row, row)
    data["preferences"] = [_label(row), *(each for decision in decisions for each in _decided(decision))]
    scored = [
        remaining_fields(each, {"pair_id", "source", "label", "response_model"})
        for each in decisions
        if each.get("score_A") is not None
    ]
    data["meta"] = remaining_fields(row, PAIR | {"question", "label", "source", "response_model"})
    if scored:
        data["meta"]["scores"] = scored
    return data


def of_decision(row: Row, pair: Row) -> dict[str, Any]:
    data = _shown(row, pair)
    data["key"] = f"{row['pair_id']}/{row.get('judge_name')}/{row.get('judge_model')}"
    data["preferences"] = [_label(row), *_decided(row)]
    data["meta"] = remaining_fields(row, DECISION | {"label", "source", "response_model"})
    return data


def of_rationale(row: Row, pair: Row, decisions: list[Row]) -> dict[str, Any]:
    data = _shown({**pair, **row}, pair)
    judge = row.get("judge_model")
    data["key"] = f"{row['pair_id']}/{judge}/rationale"
    mine = [each for decision in decisions if decision.get("judge_model") == judge for each in _decided(decision)]
    data["preferences"] = ([_label(pair)] if pair else []) + mine
    texts = {"rationale": row.get("rationale_AB"), "rationale_swapped": row.get("rationale_BA")}
    data["meta"] = remaining_fields(row, RATIONALE) | {name: text for name, text in texts.items() if text is not None}
    return data


def _shown(row: Row, pair: Row) -> dict[str, Any]:
    """The part that all three kinds share; `pair` is empty if the file of pairs was not given."""
    pair_id, files = row["pair_id"], " or ".join(PAIRS)
    question = pair.get("question") or not_given(f"question of pair {pair_id}", files)
    return {
        "key": pair_id,
        "prompt": messages(question, "question"),
        "source": "JudgeBench",
        "domain": str(row.get("source") or ""),
        "tags": [] if pair else ["text missing"],
        "responses": [
            {
                "id": letter.lower(),
                "text": text_of(pair, f"response_{letter}")
                if pair
                else not_given(f"response {letter} of {pair_id}", files),
                "origin": str(row.get("response_model") or ""),
            }
            for letter in ("A", "B")
        ],
    }


def _label(row: Row) -> dict[str, Any]:
    return {"a": "a", "b": "b", "strength": one_of(row, "label", {"A>B": -2, "B>A": 2}), "rater": "gold"}


def _decided(row: Row) -> list[dict[str, Any]]:
    """The judge's two decisions, in the frame of A and B. If it gave no readable one, it could not assess."""
    first, second = one_of(row, "decision_AB", STRENGTH), one_of(row, "decision_BA", STRENGTH)
    judge = f"{row.get('judge_name')}:{row.get('judge_model')}"
    return [_judged(f"{judge} AB", first), _judged(f"{judge} BA", None if second is None else -second)]


def _judged(rater: str, strength: int | None) -> dict[str, Any]:
    if strength is None:
        return {"a": "a", "b": "b", "verdict": "cannot_assess", "rater": rater}
    return {"a": "a", "b": "b", "strength": strength, "rater": rater}


IMPORTER = Importer(
    name="judgebench",
    label="JudgeBench",
    help="Pairs with label and responses A and B; recorded decisions and rationales of judges, by pair_id.",
    knows=knows,
    bind=bind,
    aside=aside,
)
