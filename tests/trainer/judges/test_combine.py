from dataclasses import dataclass

import pytest

from trainer.judges.combine import Vote, criterion_ratings, criterion_verdicts, majority, pair_verdicts, unswapped


@dataclass
class Said:
    subject: dict
    parsed: dict | None
    raw: str = "raw"
    problem: str = ""


def pair(order, verdict):
    strength = {"A": -1, "tie": 0, "B": 1, None: None}[verdict]
    parsed = None if verdict is None else {"verdict": verdict, "strength": strength}
    return Said({"example": "e", "a": "r1", "b": "r2", "order": order}, parsed)


def judged(*said):
    return pair_verdicts(said)["e", "r1", "r2"]


@pytest.mark.parametrize(
    ("given", "swapped", "verdict", "consistent"),
    [
        ("A", "B", -1, True),  # the judge chose the same response both times
        ("A", "A", 0, False),  # the judge chose the first response both times
        ("tie", "tie", 0, True),
        ("A", "tie", 0, False),
        ("A", None, None, None),
        (None, None, None, None),
    ],
)
def test_both_orders_make_one_verdict(given, swapped, verdict, consistent):
    found = judged(pair("given", given), pair("swapped", swapped))
    assert (found.verdict, found.consistent) == (verdict, consistent)
    assert found.missing == [given, swapped].count(None) and found.votes + found.missing == 2


def test_one_order_alone_has_a_verdict_and_no_consistency():
    found = judged(pair("swapped", "A"))
    assert (found.given, found.swapped, found.verdict, found.consistent, found.strength) == (None, 1, 1, None, 1.0)


def test_votes_are_counted_within_an_order_and_a_draw_is_a_tie():
    assert judged(pair("given", "A"), pair("given", "A"), pair("given", "B")).verdict == -1
    assert judged(pair("given", "A"), pair("given", "B"), pair("given", None)).verdict == 0
    assert judged(pair("given", None), pair("given", None)).verdict is None


def test_a_majority_leaves_missing_votes_out_and_counts_them():
    assert majority([True, None, True, False]) == Vote(True, False, 3, 1)
    assert majority([True, False]) == Vote(None, True, 2, 0)
    assert majority([None]) == Vote(None, False, 0, 1)


def test_unswapping_turns_everything_that_names_a_side():
    item = {"explanation": "", "a_meets": True, "b_meets": False}
    said = {
        "verdict": "A much better",
        "strength": -2,
        "gatekeeper": {**item, "criterion": "c"},
        "items": {"c": item},
        "missing": [],
    }
    turned = unswapped(said, "swapped")
    assert turned["verdict"] == "B much better" and turned["strength"] == 2
    assert turned["items"]["c"]["b_meets"] and not turned["gatekeeper"]["a_meets"]
    assert unswapped(turned, "swapped") == said and unswapped(said, "given") == said


def criterion(response, name, met, **more):
    subject = {"example": "e", "response": response, "criterion": name}
    return Said(subject, None if met is None else {"met": met, "explanation": f"{met}"}, **more)


def test_criteria_become_verdicts_and_missing_ones_stay_missing():
    found = criterion_verdicts(
        [
            criterion("r1", "a", True),
            criterion("r1", "b", None, problem="not JSON", raw="hm"),
            criterion("r2", "a", False),
        ]
    )
    first = found["e", "r1"]
    assert [(v.criterion_id, v.met, v.source) for v in first] == [("a", True, "judge"), ("b", None, "judge")]
    assert (first[1].note, first[1].raw) == ("not JSON", "hm")
    assert found["e", "r2"][0].met is False


def test_votes_on_a_criterion_take_the_majority_and_an_even_split_is_no_verdict():
    votes = [criterion("r", "a", met) for met in (False, True, False)]
    (verdict,) = criterion_verdicts(votes)["e", "r"]
    assert (verdict.met, verdict.note) == (False, "False")
    (split,) = criterion_verdicts(votes[:2])["e", "r"]
    assert (split.met, split.note) == (None, "2 votes are evenly split")


def checklist(items, field_name="criteria"):
    return Said({"example": "e", "response": "r", field_name: ["a", "b"]}, {"items": items, "missing": []})


def test_a_checklist_gives_the_same_verdicts_as_single_calls():
    (a, b) = criterion_verdicts([checklist({"b": {"met": True, "explanation": "yes"}})])["e", "r"]
    assert (a.met, a.note, b.met, b.note) == (None, "no answer on this criterion", True, "yes")


def test_ratings_are_means_over_the_votes_that_exist():
    found = criterion_ratings([checklist({"a": {"rating": 8}}), checklist({"a": {"rating": 5}})])
    assert found == {("e", "r"): {"a": 6.5, "b": None}}
