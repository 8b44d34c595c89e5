"""The audit of judges that are asked: pairs worked by hand, both orders, votes, people."""

import pytest

from trainer.contracts import Example, Message, Preference, Response
from webapp.evaluation.recipes import RECIPES
from webapp.evaluation.recipes.base import NothingToScore

from ..fake import FakeContext, Judge, block, cases_with_tags, row

SPEC = {"kind": "pairwise", "order": "both"}


def pair(key: str, label: int, a: str = "short", b: str = "short too", raters: tuple[int, ...] = ()) -> Example:
    strengths = raters or (label,)
    return Example(
        key=key,
        prompt=(Message(role="user", content="?"),),
        domain="math" if key < "p2" else "code",
        responses=(Response(id="x", text=a), Response(id="y", text=b)),
        preferences=tuple(Preference(a="x", b="y", strength=s, rater=f"r{i}") for i, s in enumerate(strengths)),
    )


def says(verdicts: dict[str, tuple[str | None, str | None]]):
    """(given, swapped as the judge said it) by example."""

    def answer(given, subject):
        said = verdicts[given.example][0 if subject["order"] == "given" else 1]
        return None if said is None else {"reasons": ["because"], "verdict": said}

    return answer


PAIRS = [pair("p0", -1), pair("p1", 1), pair("p2", -1), pair("p3", 1)]
HASTY = {"p0": ("A", "A"), "p1": ("A", "A"), "p2": ("A", "B"), "p3": (None, "A")}


def test_asked_in_both_orders_the_numbers_are_those_worked_by_hand():
    context = FakeContext("judge_audit", {"judges": [{"version": 1}]}, PAIRS, {1: Judge(SPEC, says(HASTY))})
    report, cases = context.run()
    found = row(report, "Right, and whichever comes first", "judge 1")
    assert (found["Accuracy"]["value"], found["Accuracy"]["n"]) == (0.5, 4)
    assert (found["Consistent"]["value"], found["Consistent"]["n"]) == (pytest.approx(1 / 3), 3)
    assert found["First place"]["value"] == pytest.approx(6 / 7)
    assert found["Missing"]["value"] == 1 and context.asked == {1: 8}
    assert {case.subject["pair"] for case in cases_with_tags(cases, found["Accuracy"]["tags"])} == {"p0", "p1"}
    assert report["entries"][0]["judge_version"] == 1
    assert len(cases[0].values["verdicts"]) == 2


def test_by_group_each_number_has_its_own_cases():
    report, cases = FakeContext("judge_audit", {"judges": [{"version": 1}]}, PAIRS, {1: Judge(SPEC, says(HASTY))}).run()
    code, math = (row(report, "Accuracy by group", group)["judge 1"] for group in ("code", "math"))
    assert (code["value"], math["value"]) == (1.0, 0.0)
    assert len(cases_with_tags(cases, math["tags"])) == 2


def test_a_judge_that_falls_for_length_is_seen_in_the_slice():
    pairs = [pair(f"p{i}", -1, "short", "long " * 20) for i in range(3)]
    longest = {f"p{i}": ("B", "A") for i in range(3)}
    report, _ = FakeContext("judge_audit", {"judges": [{"version": 1}]}, pairs, {1: Judge(SPEC, says(longest))}).run()
    assert row(report, "Accuracy by length", "judge 1")["longer is worse"]["value"] == 0.0


def test_beside_people_on_the_same_pairs():
    pairs = [pair("p0", -1, raters=(-1, -1, -1)), pair("p1", 1, raters=(1, 1, -1))]
    right = {"p0": ("A", "B"), "p1": ("B", "A")}
    report, cases = FakeContext("judge_audit", {"judges": [{"version": 1}]}, pairs, {1: Judge(SPEC, says(right))}).run()
    found = row(report, "As good as people are?", "judge 1")
    assert found["With a person"]["value"] == pytest.approx((1 + 2 / 3) / 2)
    assert found["Two people"]["value"] == pytest.approx((1 + 1 / 3) / 2)
    person = row(report, "Each person with the others", "r2")["Beside judge 1"]
    assert len(cases_with_tags(cases, person["tags"])) == person["n"] == 2


def test_pairs_without_a_label_are_cases_that_people_can_be_asked_about():
    bare = pair("p9", 0).model_copy(update={"preferences": ()})
    config = {"judges": [{"version": 1}]}
    report, cases = FakeContext("judge_audit", config, [*PAIRS, bare], {1: Judge(SPEC, says(HASTY))}).run()
    counted = dict(report["coverage"])["Without a label"]
    (case,) = cases_with_tags(cases, counted["tags"])
    assert counted["value"] == 1 and case.subject == {"example": "p9"}


def test_two_judges_are_compared_on_the_pairs_both_have():
    right = {key: ("A", "B") if label < 0 else ("B", "A") for key, label in zip(HASTY, (-1, 1, -1, 1), strict=True)}
    judges = {1: Judge(SPEC, says(HASTY)), 2: Judge(SPEC, says(right))}
    report, cases = FakeContext("judge_audit", {"judges": [{"version": 1}, {"version": 2}]}, PAIRS, judges).run()
    found = row(report, "Against judge 2", "judge 1")
    assert found["Difference"]["value"] == -0.5 and found["Only judge 2 right"]["value"] == 2
    assert found["p (McNemar)"]["value"] == 0.5  # two pairs decide, both in the same direction: 2 * 1/4
    assert found["p (McNemar)"]["n"] == 2
    counted = dict(report["coverage"])["Judges disagree"]
    disagreeing = cases_with_tags(
        cases, counted["tags"]
    )  # on p3 judge 1 gave a verdict in one order, the same one as judge 2
    assert {case.subject["pair"] for case in disagreeing} == {"p0", "p1"} and counted["value"] == len(disagreeing) == 4
    apart = cases_with_tags(cases, found["Only judge 2 right"]["tags"])
    assert {case.subject["pair"] for case in apart} == {"p0", "p1"}
    assert (
        cases_with_tags(cases, found["Only this one right"]["tags"]) == []
        and found["Only this one right"]["value"] == 0
    )


def test_votes_give_a_curve_and_a_confidence():
    spec = {**SPEC, "votes": 3, "sampling": {"temperature": 1.0}}

    def answer(given, subject):
        good, bad = ("A", "B") if subject["order"] == "given" else ("B", "A")
        return {"reasons": [], "verdict": bad if subject["sample"] == 2 else good}

    report, cases = FakeContext("judge_audit", {"judges": [{"version": 1}]}, [PAIRS[0]], {1: Judge(spec, answer)}).run()
    curve = block(report, "Voting")["series"][0]["points"]
    assert [(each["x"], each["value"]) for each in curve] == [(1, pytest.approx(2 / 3)), (3, 1.0)]
    point = block(report, "Calibration")["series"][0]["points"][0]
    assert point["x"] == pytest.approx(2 / 3) and point["tags"][1] == "confidence:60% to 70%"
    assert len(cases_with_tags(cases, point["tags"])) == 1


def test_a_tie_between_raters_on_two_sides_is_no_label():
    with pytest.raises(NothingToScore):
        context = FakeContext(
            "judge_audit", {"judges": [{"version": 1}]}, [pair("p0", 0, raters=(-1, 1))], {1: Judge(SPEC, says(HASTY))}
        )
        context.run()


def test_a_judge_that_never_answers_has_only_missing_verdicts():
    silent: dict[str, tuple[str | None, str | None]] = dict.fromkeys(HASTY, (None, None))
    report, cases = FakeContext(
        "judge_audit", {"judges": [{"version": 1}]}, PAIRS, {1: Judge(SPEC, says(silent))}
    ).run()
    found = row(report, "Right, and whichever comes first", "judge 1")
    assert found["Accuracy"]["value"] == 0.0 and found["Accuracy"]["missing"] == 4
    assert found["Consistent"]["value"] is None and "undefined" in found["Consistent"]
    assert len(cases_with_tags(cases, ["missing"])) == 4


def test_what_was_not_asked_in_the_other_order_is_not_missing():
    spec = {"kind": "pairwise", "order": "given"}
    report, cases = FakeContext("judge_audit", {"judges": [{"version": 1}]}, PAIRS, {1: Judge(spec, says(HASTY))}).run()
    found = row(report, "Right, and whichever comes first", "judge 1")
    assert (found["Accuracy"]["value"], found["Accuracy"]["missing"]) == (0.5, 1)  # p0 and p2; p3 gave no verdict
    assert found["Both orders"]["undefined"] == found["Consistent"]["undefined"] == "asked in the given order only"
    assert found["Missing"]["value"] == 1 and len(cases_with_tags(cases, found["Missing"]["tags"])) == 1
    assert (found["First place"]["value"], found["First place"]["n"], found["First place"]["missing"]) == (1.0, 3, 1)
    assert dict(report["coverage"])["Verdicts"]["value"] == 3 and "swapped" not in cases[0].values


def test_a_model_among_the_raters_is_no_label():
    said = Preference(a="x", b="y", strength=2, rater="judge:other")
    pairs = [each.model_copy(update={"preferences": (said, *each.preferences)}) for each in PAIRS[:1]]
    report, _ = FakeContext("judge_audit", {"judges": [{"version": 1}]}, pairs, {1: Judge(SPEC, says(HASTY))}).run()
    found = row(report, "Right, and whichever comes first", "judge 1")
    assert (found["As given"]["value"], found["Swapped"]["value"]) == (1.0, 0.0)  # the label is A, as the person said


def test_what_a_licence_shows_can_be_worked_out_again_from_the_stored_cases():
    pairs = [pair(f"p{i}", side, raters=(side, side, 0 if i == 2 else side)) for i, side in enumerate((-1, 1, -1, 1))]
    once = {"kind": "pairwise", "order": "given"}
    context = FakeContext(
        "judge_audit",
        {"judges": [{"version": 1}, {"version": 2}]},
        pairs,
        {1: Judge(SPEC, says(HASTY)), 2: Judge(once, says(HASTY))},
    )
    report, cases = context.run()
    again = RECIPES["judge_audit"].known_again(pairs, cases)
    assert again == {each["name"]: each["known"] for each in report["entries"]}
    both, given = again["judge 1"], again["judge 2"]
    # labels A B A B; both orders say tie, tie, A, and the one vote there is for p3: B; so p_o = 2/4 and p_e = 1/4
    assert (both["kappa"]["value"], both["kappa"]["n"]) == (pytest.approx(1 / 3), 4)
    assert (given["kappa"]["n"], given["kappa"]["missing"]) == (3, 1)
    assert both["order_consistency"]["n"] == 3 and both["place"]
    assert given["order_consistency"]["undefined"] == "asked in the given order only"
