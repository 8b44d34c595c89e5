"""RubricBench by hand: three conditions, the gap, and the agreement of the two rubrics."""

import pytest

from trainer.config.errors import ConfigInvalid
from trainer.contracts import Criterion, Example, Message, Preference, Response, Rubric
from trainer.judges.spec import resolve as resolve_spec
from webapp.evaluation.recipes.base import JudgeFacts

from ..fake import FakeContext, Judge, block, cases_with_tags, row

CRITERIA = tuple(Criterion(id=f"h{i}", text=f"Human item {i}", points=1) for i in range(4))
ITEMS = [{"text": f"Own item {i}", "kind": "hard", "importance": "important", "points": 1} for i in range(2)]


def example(i: int) -> Example:
    return Example(
        key=f"p{i}",
        prompt=(Message(role="user", content="?"),),
        domain="math" if i < 2 else "code",
        rubric=Rubric(criteria=CRITERIA),
        responses=(Response(id="x", text="one"), Response(id="y", text="two")),
        preferences=(Preference(a="x", b="y", strength=-1),),
    )


PAIRS = [example(i) for i in range(4)]


def judging(right: set[str]):
    """Right (A) about these examples, wrong about the others."""

    def answer(given, subject):
        verdict = "A" if given.example in right else "B"
        criteria = [
            {"number": n + 1, "explanation": "", "a_meets": True, "b_meets": False} for n in range(len(given.criteria))
        ]
        gatekeeper = {"number": 0, "explanation": "", "a_meets": True, "b_meets": True}
        return {"reasons": [], "verdict": verdict, "gatekeeper": gatekeeper, "criteria": criteria}

    return answer


def by_rubric(human: set[str], own: set[str]):
    def answer(given, subject):
        return judging(human if given.criteria[0].id.startswith("h") else own)(given, subject)

    return answer


def context(**config) -> FakeContext:
    def generate(given, subject):
        return None if given.example == "p3" else {"items": ITEMS}

    def matching(given, subject):
        return {"matches": [{"generated": 1, "reference": 1}, {"generated": 1, "reference": 2}]}

    judges = {
        1: Judge({"kind": "pairwise", "order": "given"}, judging({"p0"})),
        2: Judge({"kind": "pairwise_rubric", "order": "given"}, by_rubric({"p0", "p1", "p2"}, {"p0", "p1"})),
        3: Judge({"kind": "rubric_generator"}, generate),
        4: Judge({"kind": "rubric_matcher"}, matching),
        5: Judge(
            {"kind": "necessity"},
            lambda given, subject: {
                "items": [
                    {"number": n + 1, "explanation": "", "necessity": 1 if n else 5, "rigidity": 5 if n else 1}
                    for n in range(len(given.criteria))
                ]
            },
        ),
    }
    chosen = {"judge": 1, "rubric_judge": 2, "generator": 3, "matcher": 4, **config}
    return FakeContext("rubricbench", chosen, PAIRS, judges)


def test_accuracy_in_three_conditions_and_the_gap():
    report, cases = context().run()
    title = "Three conditions"
    assert row(report, title, "No rubric")["Accuracy"]["value"] == 0.25
    own = row(report, title, "Own rubric")
    assert (own["Accuracy"]["value"], own["Invalid"]["value"]) == (0.5, 1)  # no rubric was written for p3
    assert row(report, title, "Human rubric")["Accuracy"]["value"] == 0.75
    assert report["headline"]["label"].startswith("Rubric gap")
    assert report["headline"]["cell"]["value"] == pytest.approx(0.25)
    assert [case.subject["example"] for case in cases_with_tags(cases, ["helped"])] == ["p2"]
    assert [case.subject["example"] for case in cases_with_tags(cases, own["Invalid"]["tags"])] == ["p3"]


def test_by_domain():
    report, _ = context().run()
    assert row(report, "Accuracy by domain", "math")["Human rubric"]["value"] == 1.0
    assert row(report, "Accuracy by domain", "code")["Human rubric"]["value"] == 0.5


def test_alignment_is_many_to_many_and_what_was_not_matched_is_missing():
    report, cases = context().run()
    title = "Own rubrics against human ones"
    recall = row(report, title, "Recall")["Mean over rubrics"]
    assert (recall["value"], recall["n"], recall["missing"]) == (0.5, 3, 1)  # 2 of 4 items of the human rubric
    assert row(report, title, "Hallucination")["Mean over rubrics"]["value"] == 0.5  # 1 of 2 items of the own rubric
    grid = cases[0].values["grid"]
    assert grid["matched"] == [[0, 0], [1, 0]] and grid["columns"] == ["Own item 0", "Own item 1"]
    assert "grid" not in cases[3].values


def test_necessity_and_rigidity():
    report, cases = context(necessity=5).run()
    own = row(report, "Necessity and rigidity", "Own items")
    assert len(cases_with_tags(cases, own["Rigid and not needed"]["tags"])) == 3
    assert [(item["whose"], item["necessity"]) for item in cases[0].values["rated"]] == [
        *[("human items", n) for n in (5, 1, 1, 1)],
        *[("own items", n) for n in (5, 1)],
    ]
    assert (own["Necessity"]["value"], own["Necessity 1"]["value"], own["Rigid and not needed"]["value"]) == (
        3,
        0.5,
        0.5,
    )


def test_scaling_by_items_and_by_rounds():
    report, cases = context(scaling_items=True, rounds=1).run()
    sizes = block(report, "Accuracy by number of items")["series"][0]["points"]
    assert [(each["x"], each["n"]) for each in sizes] == [(2, 4), (4, 4)]
    rounds = block(report, "Accuracy by rounds of refinement")["series"][0]["points"]
    assert [(each["x"], each["n"]) for each in rounds] == [(0, 3), (1, 3)]
    for each in [*sizes, *rounds]:  # p3 was not refined: its human items are wrong, and it is in no round
        wrong = cases_with_tags(cases, each["tags"])
        assert len(wrong) == round(each["n"] * (1 - each["value"]))
    assert cases[3].values["human items 2"] == "B" and "own rubric, round 1" not in cases[3].values


def test_pairs_that_cannot_be_judged_are_counted_with_their_reason():
    made = context()
    bare = example(7).model_copy(update={"rubric": None})
    tied = example(8).model_copy(update={"preferences": (Preference(a="x", b="y", strength=0),)})
    made.listed = [*PAIRS, bare, tied, example(9).model_copy(update={"preferences": ()})]
    report, cases = made.run()
    coverage = dict(report["coverage"])
    assert coverage["Pairs"]["value"] == 4
    for words, key in (("Without a rubric", "p7"), ("Label is a tie", "p8"), ("Without a label", "p9")):
        assert coverage[words]["value"] == 1
        assert [case.subject["example"] for case in cases_with_tags(cases, coverage[words]["tags"])] == [key]


def test_human_rubrics_alone_are_enough():
    report, _ = context(judge=None, generator=None, matcher=None).run()
    assert report["headline"]["label"] == "Accuracy with the human rubric"


def sampling_context(temperature: float, **config) -> FakeContext:
    """Rubric n of p0 to p2 has three new items and one that is in all of them. p3 gets no rubric."""

    def generate(given, subject):
        if given.example == "p3":
            return None
        n = subject.get("sample", 0)
        words = ["The same  item.", *[f"item {n}.{i}" for i in range(3)]]
        return {"items": [{"text": w, "kind": "hard", "importance": "important", "points": 1} for w in words]}

    def by_size(given, subject):
        """The judge is right about p0 with 4 items, about p0 and p1 with 8, and about p0, p1 and p2 with 16."""
        right = {4: {"p0"}, 8: {"p0", "p1"}, 16: {"p0", "p1", "p2"}}[len(given.criteria)]
        return judging(right)(given, subject)

    found = context(**{"judge": None, "matcher": None, **config})
    spec = {"kind": "rubric_generator", "sampling": {"temperature": temperature}}
    found.judges |= {3: Judge(spec, generate), 2: Judge(found.judges[2].spec, by_size)}
    return found


def test_more_items_are_sampled_from_the_generator_until_there_are_enough():
    asked = sampling_context(1.0, sampled_items=16)
    report, _ = asked.run()
    curve = block(report, "Accuracy by number of items")
    (own,) = curve["series"]
    points = [(each["x"], each["value"], each["n"], each["missing"]) for each in own["points"]]
    # rubrics hold 4, 7, 10, 13, 16 different items: five of them fill 16; p3 has no rubric and so no verdict
    assert points == [(4, pytest.approx(1 / 3), 3, 0), (8, pytest.approx(2 / 3), 3, 0), (16, 1.0, 3, 0)]
    assert all(each["low"] < each["value"] for each in own["points"])
    assert asked.asked[3] == 4 + 3 * 4 + 15  # p3 is asked about every time, up to 16 rubrics
    assert "1 of 4 pairs did not come to 16" in curve["note"]


def test_at_temperature_0_another_rubric_would_be_the_same_and_is_not_asked_for():
    asked = sampling_context(0.0, sampled_items=8)
    report, _ = asked.run()
    curve = block(report, "Accuracy by number of items")
    assert [each["x"] for each in curve["series"][0]["points"]] == [4] and asked.asked[3] == 4
    assert "temperature 0" in curve["note"]


def test_human_and_own_items_share_a_chart():
    found = context(scaling_items=True, sampled_items=4, judge=None, matcher=None)
    report, _ = found.run()
    assert [each["name"] for each in block(report, "Accuracy by number of items")["series"]] == [
        "human items",
        "own items",
    ]


def test_in_a_round_of_refinement_the_generator_sees_its_rubric_and_neither_responses_nor_label():
    drafts = []
    found = context(rounds=2, judge=None, matcher=None)
    generate = found.judges[3].answer

    def watched(given, subject):
        if given.generated:
            drafts.append((given.example, given.generated))
        return generate(given, subject)

    found.judges[3] = Judge({"kind": "rubric_generator"}, watched)
    report, _ = found.run()
    assert drafts == [(key, ("Own item 0", "Own item 1")) for key in ("p0", "p1", "p2")] * 2
    points = block(report, "Accuracy by rounds of refinement")["series"][0]["points"]
    assert [(each["x"], each["value"], each["n"]) for each in points] == [
        (n, pytest.approx(2 / 3), 3) for n in range(3)
    ]


def test_sampling_items_needs_a_generator():
    with pytest.raises(ConfigInvalid) as refused:
        context(generator=None, matcher=None, sampled_items=4).config  # noqa: B018
    assert [problem.path for problem in refused.value.problems] == ["generator"]


def test_where_no_human_rubric_has_two_items_the_chart_says_so():
    found = context(scaling_items=True, sampled_items=4, judge=None, matcher=None)
    found.listed = [each.model_copy(update={"rubric": Rubric(criteria=CRITERIA[:1])}) for each in PAIRS]
    report, _ = found.run()
    assert "No human rubric has 2 items" in block(report, "Accuracy by number of items")["note"]


def test_more_rubrics_are_sampled_and_the_majority_of_their_verdicts_counts():
    """On p0 every rubric except the first is right, on p1 only the first, on p2 every second. p3 has none."""
    asked, drawn = sampling_context(1.0, sampled_rubrics=6), set()

    def by_rubric(given, subject):
        n = 0 if given.criteria[1].text == "item 0.0" else int(given.criteria[1].text[5:].split(".")[0])
        drawn.add(n)
        right = {"p0": n > 0, "p1": n == 0, "p2": n % 2 == 0}
        return judging({key for key, yes in right.items() if yes})(given, subject)

    asked.judges[2] = Judge({"kind": "pairwise_rubric", "order": "given"}, by_human_or(by_rubric))
    report, cases = asked.run()
    (own,) = block(report, "Accuracy by number of rubrics")["series"]
    # 1 rubric: p1 and p2 are right; 4 rubrics: p0 is right by 3 of 4, p1 is wrong by 3 of 4, p2 is a draw, which counts as wrong
    assert [(each["x"], each["value"], each["n"]) for each in own["points"]] == [
        (1, pytest.approx(2 / 3), 3),
        (4, pytest.approx(1 / 3), 3),
    ]
    wrong = cases_with_tags(cases, own["points"][1]["tags"])
    assert [case.subject["example"] for case in wrong] == ["p1", "p2"]
    assert drawn == {0, 1, 2, 3}, "no point of the curve has 5 or 6 rubrics, so nobody is asked for them"


def by_human_or(own):
    def answer(given, subject):
        return judging({"p0"})(given, subject) if given.criteria[0].id.startswith("h") else own(given, subject)

    return answer


def test_at_temperature_0_the_curve_over_rubrics_is_empty_and_says_why():
    report, _ = sampling_context(0.0, sampled_rubrics=4).run()
    curve = block(report, "Accuracy by number of rubrics")
    assert curve["series"][0]["points"] == [] and "temperature 0" in curve["note"]


def checking(verdict: str, a: list[bool], b: list[bool]):
    checks = [
        {"number": n, "explanation": "", "a_meets": x, "b_meets": y}
        for n, (x, y) in enumerate(zip(a, b, strict=True), 1)
    ]
    keeper = {"number": 0, "explanation": "", "a_meets": True, "b_meets": True}
    return {"gatekeeper": keeper, "criteria": checks, "verdict": verdict}


def test_value_inversions_and_execution_failures_are_tagged():
    """A is right everywhere. p0: with its own rubric the judge prefers B, which it ranks below A with the human one. p1: its checks favour
    A, and it says B. p2: its checks favour B, and it says B. p3: one check is missing, and it says B.
    """
    yes, no = [True] * 4, [False] * 4
    human = {
        "p0": checking("A", yes, no),
        "p1": checking("B", yes, no),
        "p2": checking("B", no, yes),
        "p3": checking("B", yes[:3], no[:3]),
    }

    def answer(given, subject):
        if given.criteria[0].id.startswith("h"):
            return human[given.example]
        return checking("B" if given.example == "p0" else "A", yes[:2], no[:2])

    found = context(matcher=None)
    found.judges[2] = Judge({"kind": "pairwise_rubric", "order": "given"}, answer)
    report, cases = found.run()
    tagged = {case.subject["example"]: set(case.tags) for case in cases}
    kinds = {"value inversion", "execution failure", "against its own checks"}
    assert tagged["p0"] & kinds == {"value inversion"}
    assert tagged["p1"] & kinds == {"execution failure", "against its own checks"}
    # with its own rubric it says A on p2, which its checks of the human rubric rank below B
    assert tagged["p2"] & kinds == {"execution failure", "value inversion"}
    assert tagged["p3"] & kinds == {"execution failure"}
    against = row(report, "Where it goes wrong", "Against its own checks")["Share"]
    assert (against["value"], against["n"], against["missing"]) == (0.5, 2, 1)
    assert row(report, "Where it goes wrong", "Execution failure")["Share"]["value"] == 0.75


def test_checks_in_the_swapped_order_belong_to_the_other_response():
    found = context(judge=None, generator=None, matcher=None)
    spec = {"kind": "pairwise_rubric", "order": "swapped"}
    found.judges[2] = Judge(spec, lambda given, subject: checking("A", [True] * 4, [False] * 4))
    _, cases = found.run()  # B is shown first: the verdict is wrong, and so are its checks
    assert all("execution failure" in case.tags and "against its own checks" not in case.tags for case in cases)


def facts(kind: str, asks: str = "m", **spec):
    return JudgeFacts(1, 1, kind, kind, resolve_spec({"kind": kind, **spec}).model_dump(mode="json"), asks)


def test_a_strict_run_forces_the_choice_and_holds_all_but_the_rubric_alike():
    config = context().config
    plain, ruled = facts("pairwise", scale="forced"), facts("pairwise_rubric", scale="forced")
    writer = facts("rubric_generator", sampling={"temperature": 1.0})
    assert list(config.judge_problems({"judge": plain, "rubric_judge": ruled, "generator": writer})) == []
    wrong = {
        "judge": facts("pairwise", asks="other", sampling={"temperature": 0.5}),
        "rubric_judge": ruled,
        "generator": facts("rubric_generator", asks="other"),
    }
    told = [(each.path, each.message) for each in config.judge_problems(wrong)]
    assert [path for path, _ in told] == ["judge", "judge", "judge", "generator"]
    assert "may answer a tie" in told[0][1] and "another model" in told[1][1] and "in temperature;" in told[2][1]
    assert list(context(strict=False).config.judge_problems(wrong)) == []
