"""Rationale consistency by hand: the matrix, RC, AP, and a judge that is right for other reasons."""

import pytest

from trainer.contracts import Example, Message, Preference, Reason, Response

from .fake import FakeContext, Judge, block, cases_with_tags, row


def example(i: int, reasons: int = 2) -> Example:
    return Example(
        key=f"p{i}",
        prompt=(Message(role="user", content="?"),),
        responses=(Response(id="x", text="one"), Response(id="y", text="two")),
        preferences=(
            Preference(
                a="x", b="y", strength=-2, reasons=tuple(Reason(text=f"Human reason {n}") for n in range(reasons))
            ),
        ),
    )


PAIRS = [example(0), example(1), example(2, reasons=0)]


def judging(reasons: dict[str, list[str]], verdict: str = "A"):
    return lambda given, subject: {"reasons": reasons[given.example], "verdict": verdict}


def matching(scores: dict[str, float]):
    """Each reason has its own score in the row of the human reason at the same place, and 0 elsewhere."""

    def answer(given, subject):
        rows = [
            {
                "human": h + 1,
                "scores": [scores[m] if place % 2 == h else 0.0 for place, m in enumerate(given.model_reasons)],
            }
            for h in range(len(given.human_reasons))
        ]
        return {"rows": rows}

    return answer


SCORES = {"same": 1.0, "close": 0.8, "other": 0.0}


def context(reasons, **config) -> FakeContext:
    judges = {
        1: Judge({"kind": "pairwise", "order": "given"}, judging(reasons)),
        4: Judge({"kind": "reason_matcher"}, matching(SCORES)),
        6: Judge(
            {"kind": "flaws"},
            lambda given, subject: {
                "reasons": [
                    {"number": n + 1, "explanation": "", "rests_on": "generic", "flaws": ["F2"] if n else []}
                    for n in range(len(given.model_reasons))
                ]
            },
        ),
        7: Judge({"kind": "reason_matcher"}, matching(SCORES)),
    }
    return FakeContext("metajudge", {"judges": [{"version": 1}], "matcher": 4, **config}, PAIRS, judges)


TITLE = "Right, and for the right reasons"


def test_consistency_by_hand():
    report, cases = context({"p0": ["same", "close"], "p1": ["other", "other"]}).run()
    found = row(report, TITLE, "judge 1")
    assert found["RC"]["value"] == pytest.approx((0.9 + 0.0) / 2)
    assert found["AP"]["value"] == pytest.approx((1.0 + 0.0) / 2)
    assert found["Accuracy"]["value"] == 1.0
    assert found["Right, other reasons"]["value"] == 1
    assert [case.subject["example"] for case in cases_with_tags(cases, ["right, other reasons"])] == ["p1"]
    assert cases[0].values["grid"]["matched"] == [[0, 0], [1, 1]]


def test_pairs_without_human_reasons_are_left_out_and_counted():
    report, cases = context({"p0": ["same"], "p1": ["same"]}).run()
    assert len(cases_with_tags(cases, ["judge:judge 1"])) == 2
    counted = dict(report["coverage"])["Too few or many reasons"]
    assert counted["value"] == 1
    assert [case.values["left out"] for case in cases_with_tags(cases, counted["tags"])] == ["0 human reasons"]


def test_pairs_without_a_label_or_with_a_tie_are_left_out_each_with_its_reason():
    made = context({"p0": ["same"], "p1": ["same"]})
    tied = Preference(a="x", b="y", strength=0)
    bare = [example(n).model_copy(update={"preferences": given}) for n, given in ((8, ()), (9, (tied,)))]
    made.listed = [*PAIRS, *bare]
    report, cases = made.run()
    coverage = dict(report["coverage"])
    for words, key in (("Without a label", "p8"), ("Label is a tie", "p9")):
        assert [case.subject["example"] for case in cases_with_tags(cases, coverage[words]["tags"])] == [key]


def test_a_judge_that_gives_no_answer_is_wrong_and_counted():
    made = context({"p0": ["same"], "p1": ["same"]})
    real = made.judges[1].answer
    made.judges[1].answer = lambda given, subject: None if given.example == "p0" else real(given, subject)
    report, cases = made.run()
    found = row(report, TITLE, "judge 1")
    assert (found["Accuracy"]["value"], found["Accuracy"]["n"], found["Accuracy"]["missing"]) == (0.5, 2, 1)
    assert (found["RC"]["n"], found["RC"]["missing"]) == (1, 1)
    assert len(cases_with_tags(cases, found["Accuracy"]["tags"])) == 1


def test_a_judge_without_reasons_scores_zero_not_missing():
    report, _ = context({"p0": [], "p1": []}).run()
    found = row(report, TITLE, "judge 1")
    assert (found["RC"]["value"], found["RC"]["n"], found["No reasons"]["value"]) == (0.0, 2, 2)


def test_what_the_matcher_could_not_score_is_missing_not_zero():
    made = context({"p0": ["same"], "p1": ["same"]})
    real = made.judges[4].answer
    made.judges[4].answer = lambda given, subject: None if given.example == "p0" else real(given, subject)
    report, cases = made.run()
    found = row(report, TITLE, "judge 1")
    assert (found["RC"]["n"], found["Not matched"]["value"]) == (1, 1)
    assert len(cases_with_tags(cases, ["not matched"])) == 1


def test_classes_and_flaws():
    report, cases = context({"p0": ["same", "other"], "p1": ["same"]}, flaws=6).run()
    assert row(report, "Flaws of reasons", "judge 1")["F2"]["value"] == pytest.approx(1 / 3)
    generic = row(report, "Basis of the reasons", "judge 1")["Generic"]
    assert generic["value"] == 1.0 and len(cases_with_tags(cases, generic["tags"])) == 2


def test_another_matcher_that_says_the_same_agrees_fully():
    report, _ = context({"p0": ["same", "close"], "p1": ["other", "other"]}, second_matcher=7).run()
    cells = block(report, "Would another matcher say the same?")["rows"][0]
    assert (cells[1]["value"], cells[2]["value"]) == (pytest.approx(1.0), pytest.approx(0.0))


def test_the_scatter_has_a_point_per_judge():
    report, _ = context({"p0": ["same"], "p1": ["same"]}).run()
    assert [each["name"] for each in block(report, "Reasons against verdicts")["points"]] == ["judge 1"]


def test_a_wrong_verdict_beside_right_ones_is_counted_in_plain_numbers():
    made = context({"p0": ["same", "close"], "p1": ["other", "other"]})
    made.judges[1] = Judge(
        {"kind": "pairwise", "order": "given"},
        lambda given, subject: {"reasons": ["other"], "verdict": "A" if given.example == "p0" else "B"},
    )
    report, cases = made.run()  # the judge writes it as JSON, and so does the database
    found = row(report, TITLE, "judge 1")
    assert (found["Accuracy"]["value"], found["Right, other reasons"]["value"]) == (0.5, 1)
    assert len(cases_with_tags(cases, found["Accuracy"]["tags"])) == 1
