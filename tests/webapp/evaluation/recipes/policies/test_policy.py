"""Policy evaluation by hand: scores, pass@k, wins and changes, from the dataset and from runs."""

from dataclasses import replace

import pytest

from trainer.contracts import Criterion, CriterionResult, Example, Message, Response, Rubric, Verdict, VerifierSpec
from webapp.evaluation.recipes.base import NothingToScore, Rollout

from ..fake import FakeContext, Judge, block, cases_with_tags, row

RUBRIC = Rubric(
    criteria=(
        Criterion(
            id="c1", text="Says yes", points=2, verifier=VerifierSpec(name="must_contain", args={"texts": ["yes"]})
        ),
        Criterion(id="c2", text="Is kind", points=2, tags=("tone",)),
    )
)


def example(i: int) -> Example:
    texts = {"old": ["no", "yes"], "new": ["yes kind", "yes"]}
    responses = tuple(
        Response(id=f"{origin}{n}", text=text, origin=origin)
        for origin, listed in texts.items()
        for n, text in enumerate(listed)
    )
    return Example(
        key=f"p{i}",
        prompt=(Message(role="user", content="?"),),
        domain=f"d{i}",
        split="train" if i else "heldout",
        rubric=RUBRIC,
        responses=responses,
    )


KIND = Judge(
    {"kind": "criterion"},
    lambda given, subject: {"explanation": "", "met": "kind" in next(iter(given.responses.values()))},
)
MODELS = [{"origin": "old"}, {"origin": "new"}]


def context(**config) -> FakeContext:
    chosen = {"responses": MODELS, "judge": 1, **config}
    return FakeContext("policy", chosen, [example(0), example(1)], {1: KIND})


def test_scores_by_hand():
    report, cases = context().run()
    old, new = row(report, "Rubric scores", "old"), row(report, "Rubric scores", "new")
    assert (old["Raw score"]["value"], new["Raw score"]["value"]) == (0.25, 0.75)  # (0 + .5) / 2, (1 + .5) / 2
    assert (new["Difference"]["value"], new["Difference"]["n"]) == (0.5, 2)
    assert len(cases_with_tags(cases, old["Raw score"]["tags"])) == 4


def test_only_what_no_verifier_decides_is_asked():
    made = context()
    made.run()
    assert made.asked == {1: 8}  # one criterion of each of 8 responses


def test_without_a_judge_the_undecided_criterion_leaves_the_score_partial():
    report, cases = context(judge=None).run()
    assert row(report, "Rubric scores", "new")["Raw score"]["value"] == 1.0
    assert len(cases_with_tags(cases, ["partial"])) == len(cases_with_tags(cases, ["undecided"])) == 8


def test_by_criterion_axis_and_domain():
    report, cases = context().run()
    yes = row(report, "By criterion", "Says yes")
    assert (yes["old"]["value"], yes["new"]["value"]) == (0.5, 1.0)
    assert {case.subject["model"] for case in cases_with_tags(cases, yes["old"]["tags"])} == {"old"}
    tone = row(report, "By axis", "tone")["new"]
    assert tone["value"] == 0.5 and len(cases_with_tags(cases, tone["tags"])) == 4
    assert row(report, "By domain", "d0")["new"]["value"] == 0.75
    assert row(report, "Held out and training", "heldout")["old"]["value"] == 0.25


def test_pass_at_k_and_best_of_n():
    report, _ = context().run()
    passes = {each["name"]: each["points"] for each in block(report, "pass@k")["series"]}
    assert [each["value"] for each in passes["new"]] == [0.5, 1.0]
    assert [each["value"] for each in passes["old"]] == [0.0, 0.0]


def test_avg_at_k_beside_what_one_success_and_the_best_would_give():
    report, _ = context().run()
    new, old = row(report, "Avg@k", "new"), row(report, "Avg@k", "old")
    # two responses to each of two prompts, scores 1 and .5 (one success) each: the success rates are .5, one of two succeeds certainly
    assert [new[name]["value"] for name in ("k", "Avg@k success", "pass@k", "Best of k")] == [2, 0.5, 1.0, 1.0]
    assert new["Avg@k score"]["value"] == 0.75 == row(report, "Rubric scores", "new")["Clipped"]["value"]
    assert [old[name]["value"] for name in ("Avg@k success", "pass@k")] == [0.0, 0.0]
    assert all(cell["n"] == 2 for name, cell in new.items() if name not in ("Model", "k")), "prompts, not responses"


def test_rejection_sampling_beside_best_of_n():
    report, _ = context().run()
    new, old = row(report, "Rejection sampling", "new"), row(report, "Rejection sampling", "old")
    # scores 1 and .5: half of the orders keep the first, half draw again and keep the second; no old response succeeds
    names = ("Responses at most", "Score kept", "Responses drawn", "Best of as many")
    assert [new[name]["value"] for name in names] == [2, 1.0, 1.5, 1.0]
    assert old["Responses drawn"]["value"] == 2.0 and old["Score kept"]["value"] <= old["Best of as many"]["value"]
    curve = {each["name"]: each["points"] for each in block(report, "Rejection sampling of N")["series"]}
    assert [each["value"] for each in curve["new"]] == [0.75, 1.0]


def test_who_wins_by_score_and_by_a_judge():
    report, cases = context().run()
    new = row(report, "Who wins", "new")
    assert (new["Won"]["value"], new["Tied"]["value"], new["Lost"]["value"]) == (2, 0, 0)
    assert len(cases_with_tags(cases, new["Won"]["tags"])) == 4  # two responses to each of two prompts
    assert not cases_with_tags(cases, new["Lost"]["tags"])
    made = context(pairwise=2)
    made.judges[2] = Judge(
        {"kind": "pairwise", "order": "given"}, lambda given, subject: {"reasons": [], "verdict": "A"}
    )
    report, cases = made.run()
    won = row(report, "Who wins", "old")["Won"]
    assert won["value"] == 2
    behind = cases_with_tags(cases, won["tags"])  # the first response to each prompt, with the answer of the judge
    assert [case.subject["response"] for case in behind] == ["old0", "old0"]
    assert all(any(verdict > 2000 for verdict in case.values["verdicts"]) for case in behind)


def test_among_three_models_a_case_says_against_whom_it_won():
    report, cases = context(responses=[*MODELS, {"name": "again", "origin": "old"}]).run()
    new, old = row(report, "Who wins", "new"), row(report, "Who wins", "old")
    assert (new["Won"]["value"], old["Tied"]["value"], old["Lost"]["value"]) == (4, 2, 2)
    behind = cases_with_tags(cases, new["Won"]["tags"])
    assert {"won:old", "won:again"} <= set(behind[0].tags) and behind[0].values["won against"] == "old, again"
    assert len(cases_with_tags(cases, [*old["Tied"]["tags"], "tied:again"])) == 4


def test_models_without_a_prompt_in_common_are_told_apart_from_models_that_tie():
    apart = [
        each.model_copy(update={"responses": tuple(r for r in each.responses if r.origin == origin)})
        for each, origin in ((example(0), "old"), (example(1), "new"))
    ]
    made = context()
    made.listed = apart
    report, _ = made.run()
    assert block(report, "Who wins")["rows"] == []
    assert "No prompt has responses of two models" in block(report, "Who wins")["note"]


def test_a_comparison_without_an_outcome_is_counted_and_leads_to_its_responses():
    made = context(pairwise=2)
    spec = {"kind": "pairwise", "order": "given"}
    made.judges[2] = Judge(
        spec, lambda given, subject: None if given.example == "p0" else {"reasons": [], "verdict": "A"}
    )
    report, cases = made.run()
    lost = row(report, "Who wins", "old")["No outcome"]
    assert lost["value"] == 1 and "Without an outcome: 1 comparison." in block(report, "Who wins")["note"]
    assert [case.subject["example"] for case in cases_with_tags(cases, lost["tags"])] == ["p0"]


def test_what_changed_most_leads_to_its_responses():
    report, cases = context().run()
    found = row(report, "Changed most", "p0")
    assert found["Change"]["value"] == 0.5
    assert (found["old"]["value"], found["old"]["n"], found["new"]["value"], found["Change"]["n"]) == (0.25, 2, 0.75, 4)
    assert found["old"]["low"] <= 0.25 <= found["old"]["high"]
    assert len(cases_with_tags(cases, found["old"]["tags"])) == 2
    assert found["Prompt"]["compare"] == "p0" and len(cases_with_tags(cases, ["example:p0"])) == 4


def rollout(text: str, met: bool | None) -> Rollout:
    verdict = Verdict(criterion_id="c1", met=met, note="" if met is not None else "no verifier")
    return Rollout(
        "p9", "user: ?", text, (CriterionResult(text="Says yes", points=2, kind="hard", verdict=verdict),), 3
    )


def test_two_checkpoints_of_runs_without_any_dataset():
    sampled = {7: [rollout("no", False)], 8: [rollout("yes", True), rollout("?", None)]}
    report, cases = FakeContext("policy", {"responses": [{"run": 7}, {"run": 8}]}, sampled=sampled).run()
    assert row(report, "Rubric scores", "run 8")["Clipped"]["value"] == 1.0
    assert row(report, "Rubric scores", "run 8")["Clipped"]["missing"] == 1
    assert row(report, "Rubric scores", "run 7")["Length"]["value"] == 3
    assert len(cases_with_tags(cases, ["no score"])) == 1
    asked = [(case.subject["response"], case.values["text"]) for case in cases]
    assert asked == [("sampled-0.0", "no"), ("sampled-1.0", "yes"), ("sampled-1.1", "?")], "what tasks are made of"


def test_held_out_beside_what_a_run_learnt_from():
    """The training responses of the run change no other number, and are separate cases."""
    made = FakeContext("policy", {"responses": [{"run": 7, "name": "before"}, {"run": 8, "name": "after"}]})
    made.sampled = {7: [rollout("no", False)], 8: [rollout("yes", True), rollout("no", False)]}
    made.learnt_from = {8: [rollout("yes", True), rollout("yes!", True)]}
    report, cases = made.run()
    held, learnt = (row(report, "Held out and training", name) for name in ("heldout", "in training"))
    assert (held["before"]["value"], held["after"]["value"], learnt["after"]["value"]) == (0.0, 0.5, 1.0)
    assert learnt["before"]["undefined"] == "it had not learnt from any response yet"
    assert len(cases_with_tags(cases, learnt["after"]["tags"])) == 2
    scores = row(report, "Rubric scores", "after")
    assert (scores["Clipped"]["value"], scores["Responses"]["value"]) == (0.5, 2)
    assert len(cases_with_tags(cases, scores["Clipped"]["tags"])) == 2


def test_a_model_without_responses_is_named_with_those_there_are():
    with pytest.raises(NothingToScore, match=r"llama: the dataset has no such responses; it has those of new, old"):
        context(responses=[{"origin": "old"}, {"origin": "llama"}]).run()
    with pytest.raises(NothingToScore, match="run 7 step 3: the run has sampled nothing"):
        FakeContext("policy", {"responses": [{"run": 7, "step": 3}]}, sampled={7: []}).run()


def sampled(*texts: str) -> list[Rollout]:
    return [Rollout(f"p{i // 2}", "?", text, (), None) for i, text in enumerate(texts)]


def varied(**config) -> FakeContext:
    """Two runs with two responses to each of two prompts. `KIND` prefers the kind ones."""
    made = context(responses=[{"run": 1, "name": "before"}, {"run": 2, "name": "after"}], **config)
    result = CriterionResult(text="Is kind", points=1, kind="principle", verdict=Verdict(criterion_id="k", met=True))
    unkind = result.model_copy(update={"verdict": Verdict(criterion_id="k", met=False)})
    made.sampled = {
        run: [replace(each, criteria=(result if "kind" in each.text else unkind,)) for each in sampled(*texts)]
        for run, texts in {1: ("a", "a", "b", "b"), 2: ("kind", "kind", "c", "dd")}.items()
    }
    made.rho = {2: [12.0, 3.0, 1.0, None]}
    return made


def test_variety_of_words_and_meaning():
    report, _ = varied().run()
    before, after = row(report, "Variety and novelty", "before"), row(report, "Variety and novelty", "after")
    assert before["Wording"]["value"] == pytest.approx(0.0, abs=1e-9)  # the same text twice
    # one prompt is the same, and the other prompts have nothing in common
    assert after["Wording"]["value"] == pytest.approx(0.5)
    assert before["Meaning"]["value"] == pytest.approx(0.02)  # by the fake judge: 0.01 per letter, 2 letters each
    assert (after["Meaning"]["value"], after["Meaning"]["n"]) == (pytest.approx((0.08 + 0.03) / 2), 2)
    assert after["Novelty"]["undefined"] == "not asked for"


def test_novelty_its_shares_and_the_gain_where_it_is_highest():
    report, cases = varied(novelty=True).run()
    after = row(report, "Variety and novelty", "after")
    assert (after["Novelty"]["value"], after["Novelty"]["n"], after["Novelty"]["missing"]) == (3.0, 3, 1)
    # prompts are drawn whole: of p0 twice the median is that of 12 and 3, of p1 twice it is 1
    assert (after["Novelty"]["low"], after["Novelty"]["high"]) == (1.0, 7.5)
    assert (after["Above 2"]["low"], after["Above 2"]["high"]) == (0.0, 1.0)
    assert [after[f"Above {bound}"]["value"] for bound in (2, 10, 100)] == [
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
        0,
    ]
    assert after["Gain where novel"]["value"] == 1.0  # p0: from 0 to 1
    # of three responses with a rho, the one of 12 is novel, and kind; one of the other two is kind
    assert (after["Score where novel"]["value"], after["Score elsewhere"]["value"]) == (1.0, 0.5)
    assert after["Score elsewhere"]["n"] == 2
    before = row(report, "Variety and novelty", "before")
    assert before["Novelty"]["undefined"] == "run 1 keeps no checkpoint" and before["Novelty"]["missing"] == 4
    assert cases_with_tags(cases, ["model:after"])[0].values["novelty"] == 12.0


def test_the_responses_of_a_dataset_have_no_novelty_and_say_so():
    report, _ = context(novelty=True).run()
    assert "no weights" in row(report, "Variety and novelty", "old")["Novelty"]["undefined"]


def test_what_changed_most_leads_to_the_responses_side_by_side():
    report, _ = varied().run()
    (changed,) = block(report, "Changed most")["rows"]
    assert (changed[0]["compare"], changed[3]["value"]) == ("p0", 1.0)
    assert "of 2 prompts with both scores 1 changed" in block(report, "Changed most")["note"]


def test_people_correct_the_judge_by_a_random_part_of_the_prompts() -> None:
    """The judge calls every response kind. People say that the second of two is not. 40 prompts, 24 of them graded in two rounds."""
    listed = [example(i).model_copy(update={"responses": (Response(id="r", text=f"yes {i}"),)}) for i in range(40)]
    published = [graded_by_people(each, "met" if i % 2 == 0 else "not_met") for i, each in enumerate(listed[:24])]
    made = FakeContext(
        "policy",
        {"judge": 1, "graded": [{"dataset": 7}, {"dataset": 8}], "half_width": 0.1},
        listed,
        {1: ALL_KIND},
        published={7: published[:10], 8: published[10:]},
    )
    report, cases = made.run()
    found = row(report, "Corrected by people", "dataset")
    assert found["By the judge"]["value"] == 1.0 and found["By people"]["value"] == 0.75
    assert (found["Corrected"]["value"], found["Corrected"]["n"]) == (0.75, 24), "the judge says nothing of people's"
    assert found["Correlation"]["value"] is None
    more = found["To grade next"]["value"]
    drawn = cases_with_tags(cases, found["To grade next"]["tags"])
    assert 0 < more == len(drawn) < 16
    assert {case.subject["example"] for case in drawn} <= {each.key for each in listed[24:]}
    assert "pairs v1, graded 7 v1, graded 8 v1" in block(report, "Corrected by people")["note"]


def test_no_score_is_shown_above_one() -> None:
    listed = [example(i).model_copy(update={"responses": (Response(id="r", text=f"yes {i}"),)}) for i in range(60)]
    unkind = Judge({"kind": "criterion"}, lambda given, subject: {"explanation": "", "met": False})
    published = [graded_by_people(each, "met" if i else "not_met") for i, each in enumerate(listed[:25])]
    made = FakeContext(
        "policy", {"judge": 1, "graded": [{"dataset": 7}]}, listed, {1: unkind}, published={7: published}
    )
    found = row(made.run()[0], "Corrected by people", "dataset")["Corrected"]
    assert found["value"] == 0.98 and found["low"] < 0.98 and found["high"] == 1.0


def test_prompts_that_programs_decide_say_nothing_of_how_far_people_and_judge_are_apart() -> None:
    """60 prompts have only verifiers and score 1. Of 40 others, 20 are graded, and people find half of these not kind. By people they score
    .75, so the score of all is .6 + .4 x .75. The judge calls every response kind.
    """
    listed = [example(i).model_copy(update={"responses": (Response(id="r", text=f"yes {i}"),)}) for i in range(100)]
    program = Rubric(criteria=RUBRIC.criteria[:1])
    listed = [each.model_copy(update={"rubric": program}) if i >= 40 else each for i, each in enumerate(listed)]
    published = [graded_by_people(each, "met" if i % 2 == 0 else "not_met") for i, each in enumerate(listed[:20])]
    made = FakeContext(
        "policy", {"judge": 1, "graded": [{"dataset": 7}]}, listed, {1: ALL_KIND}, published={7: published}
    )
    report, cases = made.run()
    found = row(report, "Corrected by people", "dataset")
    assert found["By the judge"]["value"] == 1.0
    assert (found["Corrected"]["value"], found["Corrected"]["n"]) == (pytest.approx(0.9), 20)
    assert found["By people"]["value"] == pytest.approx(0.9)
    assert "60 prompts need no grades" in block(report, "Corrected by people")["note"]
    drawn = {case.subject["example"] for case in cases_with_tags(cases, found["To grade next"]["tags"])}
    assert drawn <= {each.key for each in listed[20:40]}


def test_a_criterion_on_which_people_part_counts_half() -> None:
    one = example(0).model_copy(update={"responses": (Response(id="r", text="yes 0"),)})
    both = [graded_by_people(one, "met", "not_met")]
    made = FakeContext("policy", {"judge": 1, "graded": [{"dataset": 7}]}, [one], {1: ALL_KIND}, published={7: both})
    report, cases = made.run()
    found = row(report, "Corrected by people", "dataset")
    assert found["By people"]["value"] == 0.75, "2 points of the verifier and half of 2"
    assert not cases_with_tags(cases, ["to grade next"]), "it is not asked about again"


def test_nobody_has_graded_yet_so_the_first_twenty_prompts_are_drawn() -> None:
    listed = [example(i) for i in range(30)]
    report, cases = FakeContext("policy", {"responses": MODELS, "judge": 1}, listed, {1: KIND}).run()
    found = row(report, "Corrected by people", "old")
    assert found["Corrected"]["value"] is None and found["Corrected"]["undefined"] == "people have scored none of them"
    drawn = {case.subject["example"] for case in cases_with_tags(cases, found["To grade next"]["tags"])}
    assert len(drawn) == 20 == found["To grade next"]["value"]
    assert drawn != {each.key for each in listed[:20]}, "not the first ones, which may be alike"


def test_people_who_give_all_the_same_score_are_asked_about_another_batch() -> None:
    listed = [example(i).model_copy(update={"responses": (Response(id="r", text=f"yes {i}"),)}) for i in range(60)]
    published = [graded_by_people(each, "not_met") for each in listed[:30]]
    made = FakeContext(
        "policy", {"judge": 1, "graded": [{"dataset": 7}]}, listed, {1: ALL_KIND}, published={7: published}
    )
    found = row(made.run()[0], "Corrected by people", "dataset")
    assert found["Corrected"]["low"] is None and "same score" in found["Corrected"]["interval"]
    assert found["To grade next"]["value"] == 20


def test_without_a_judge_nothing_is_to_be_corrected() -> None:
    report, cases = context(judge=None).run()
    assert not any(each["title"] == "Corrected by people" for each in report["blocks"])
    assert not cases_with_tags(cases, ["to grade next"])


ALL_KIND = Judge({"kind": "criterion"}, lambda given, subject: {"explanation": "", "met": True})


def graded_by_people(of: Example, *grades: str) -> Example:
    tasks = [
        {"subject": {"response": "r"}, "rater": f"p{number}", "grades": {"c2": grade}}
        for number, grade in enumerate(grades)
    ]
    return of.model_copy(update={"meta": {"annotation": {"3": {"tasks": tasks}}}})
