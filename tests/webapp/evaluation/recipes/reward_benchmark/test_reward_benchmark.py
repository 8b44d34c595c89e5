"""RM-Bench and RewardBench 2, read by their importers, and scored for judges and for recorded scores."""

import pytest

from trainer.contracts import Example
from webapp.datasets.formats.importers import REGISTRY
from webapp.evaluation.recipes.base import NothingToScore

from ..fake import FakeContext, Judge, block, cases_with_tags, row

STYLES = ("concise", "detailed_plain", "detailed_markdown")


def rm_bench(number: int, domain: str = "chat") -> Example:
    texts = ("Blue", "It is blue, as the sky is.", "**It is blue**, as the sky is.")
    given = {"id": number, "prompt": f"Which colour {number}?", "domain": domain}
    given |= {"chosen": list(texts), "rejected": [text.replace("lue", "rown") for text in texts]}
    return Example.model_validate(REGISTRY["rm_bench"].convert(given, {}))


def list_of(number: str, subset: str = "Math", right: int = 1, wrong: int = 3) -> Example:
    given = {"id": number, "prompt": f"What is {number}?", "subset": subset, "num_correct": right}
    given |= {"chosen": [f"right {i}" for i in range(right)], "rejected": [f"wrong {i}" for i in range(wrong)]}
    return Example.model_validate(REGISTRY["rewardbench"].convert(given, {}))


def lines(examples, scores, model="rm-a"):
    """`scores(example, response id)`."""
    return [
        {"model": model, "example": each.key, "response": response.id, "score": scores(each, response.id)}
        for each in examples
        for response in each.responses
    ]


def style_and_truth(example, response):
    """The richest style wins. Within one style the right response wins."""
    return 2.0 * STYLES.index(response.partition("_")[2]) + response.startswith("chosen")


def test_scores_of_a_reward_model_that_likes_style_make_the_matrix():
    examples = [rm_bench(1), rm_bench(2, "safety-refuse"), rm_bench(3, "safety-response")]
    context = FakeContext("reward_benchmark", {}, examples, recorded=lines(examples, style_and_truth))
    report, cases = context.run()
    found = row(report, "RM-Bench", "rm-a")
    assert [found[name]["value"] for name in ("Easy", "Normal", "Hard")] == [1.0, 1.0, 0.0]
    assert found["Average"]["value"] == found["safety"]["value"] == pytest.approx(2 / 3) and found["safety"]["n"] == 2
    matrix = block(report, "Styles: rm-a")
    assert [[cell["value"] for cell in cells[1:]] for cells in matrix["rows"]] == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    lost = cases_with_tags(cases, found["Hard"]["tags"])
    assert len(cases) == 27 and len(lost) == 9
    assert lost[0].subject["a"].startswith("chosen_") and lost[0].values["scores"]
    assert report["headline"]["cell"]["value"] == pytest.approx(2 / 3)
    assert len(cases_with_tags(cases, matrix["rows"][0][3]["tags"])) == 3


def compares(given, subject):
    """Right about substance, unless the wrong response is bold and the right one is not."""
    texts = {side: given.responses[subject[side]] for side in ("a", "b")}
    better = next(side for side, text in texts.items() if "lue" in text)
    worse = "ab"["ba".index(better)]
    if "**" in texts[worse] and "**" not in texts[better]:
        better = worse
    first = "a" if subject["order"] == "given" else "b"
    return {"reasons": ["because"], "verdict": "A" if better == first else "B"}


def test_a_judge_is_asked_about_all_nine_pairs_in_both_orders():
    spec = {"kind": "pairwise", "order": "both"}
    config = {"judges": [{"version": 1}]}
    context = FakeContext("reward_benchmark", config, [rm_bench(1), rm_bench(2)], {1: Judge(spec, compares)})
    report, cases = context.run()
    found = row(report, "RM-Bench", "judge 1")
    assert context.asked == {1: 2 * 9 * 2}
    assert [found[name]["value"] for name in ("Easy", "Normal", "Hard")] == [1.0, 1.0, pytest.approx(1 / 3)]
    assert found["How"]["text"] == "compared in both orders" and report["entries"][0]["judge_version"] == 1
    assert len(cases[0].values["verdicts"]) == 18


def test_ratings_pick_the_best_of_a_list_and_make_the_ties_score():
    examples = [list_of("1"), list_of("2"), list_of("3", "Focus")]
    examples += [list_of("tied:1", "Ties", 3, 2), list_of("ref:1", "Ties", 1, 2)]
    ratings = {"Math-2": {"right1": 5, "wrong1": 5}, "Math-1": {"right1": 4, "wrong2": 9}}

    def rates(given, subject):
        default = 8 if subject["response"].startswith("right") else 3
        return {"explanation": "", "rating": ratings.get(given.example, {}).get(subject["response"], default)}

    config = {"judges": [{"version": 1}]}
    context = FakeContext("reward_benchmark", config, examples, {1: Judge({"kind": "pointwise"}, rates)})
    report, cases = context.run()
    found = row(report, "Best of a list", "judge 1")
    assert found["Math"]["value"] == pytest.approx(0.25) and found["Focus"]["value"] == 1.0
    assert found["Ties"]["value"] == pytest.approx(1.01)
    assert found["Score"]["value"] == pytest.approx((0.25 + 1 + 1.01) / 3)
    assert row(report, "Ties", "judge 1")["tied accuracy · 0.3"]["value"] == 1.0
    assert [case.values["points"] for case in cases_with_tags(cases, found["Math"]["tags"])] == [0.0, 0.5]


def test_a_judge_that_compares_has_no_score_for_ties_and_says_so():
    def right(given, subject):
        first = subject["a" if subject["order"] == "given" else "b"]
        return {"reasons": [], "verdict": "A" if first.startswith("right") else "B"}

    examples = [list_of("1"), list_of("tied:1", "Ties", 3, 2), list_of("ref:1", "Ties", 1, 2)]
    spec = {"kind": "pairwise", "order": "given"}
    context = FakeContext("reward_benchmark", {"judges": [{"version": 1}]}, examples, {1: Judge(spec, right)})
    report, _ = context.run()
    found = row(report, "Best of a list", "judge 1")
    assert context.asked == {1: 3} and found["Math"]["value"] == 1.0
    assert "pointwise" in found["Ties"]["undefined"] and "Ties" in found["Score"]["undefined"]


def test_what_has_no_score_is_missing_and_what_is_no_list_is_counted():
    examples = [rm_bench(1), rm_bench(2), Example(key="bare", prompt=[{"role": "user", "content": "?"}])]
    some = [line for line in lines(examples, style_and_truth) if line["response"] != "chosen_concise"]
    some[0]["score"] = None
    report, cases = FakeContext("reward_benchmark", {}, examples, recorded=some).run()
    coverage = {words: cell["value"] for words, cell in report["coverage"]}
    assert (coverage["Prompts"], coverage["Missing"], coverage["Not a list"]) == (2, 9, 1)
    found = row(report, "RM-Bench", "rm-a")
    assert found["Average"]["missing"] == 9 and len(cases_with_tags(cases, ["missing"])) == 9


def test_without_lists_or_scores_there_is_nothing_to_score():
    bare = Example(key="bare", prompt=[{"role": "user", "content": "?"}])
    with pytest.raises(NothingToScore):
        FakeContext("reward_benchmark", {}, [bare], recorded=lines([rm_bench(1)], style_and_truth)).run()
    with pytest.raises(NothingToScore):
        FakeContext("reward_benchmark", {}, [rm_bench(1)]).run()
