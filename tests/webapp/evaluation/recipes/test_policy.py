"""Policy evaluation by hand: scores, pass@k, wins, what changed; from the dataset and from runs."""

from trainer.contracts import Criterion, CriterionResult, Example, Message, Response, Rubric, Verdict, VerifierSpec
from webapp.evaluation.recipes.base import Rollout

from .fake import FakeContext, Judge, block, carrying, row

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
    assert len(carrying(cases, old["Raw score"]["tags"])) == 4


def test_only_what_no_verifier_decides_is_asked():
    made = context()
    made.run()
    assert made.asked == {1: 8}  # one criterion of each of 8 responses


def test_without_a_judge_the_undecided_criterion_leaves_the_score_partial():
    report, cases = context(judge=None).run()
    assert row(report, "Rubric scores", "new")["Raw score"]["value"] == 1.0
    assert len(carrying(cases, ["partial"])) == len(carrying(cases, ["undecided"])) == 8


def test_by_criterion_axis_and_domain():
    report, cases = context().run()
    yes = row(report, "By criterion", "Says yes")
    assert (yes["old"]["value"], yes["new"]["value"]) == (0.5, 1.0)
    assert {case.subject["model"] for case in carrying(cases, yes["old"]["tags"])} == {"old"}
    assert row(report, "By axis", "tone")["new"]["value"] == 0.5
    assert row(report, "By domain", "d0")["new"]["value"] == 0.75
    assert row(report, "Held out and training", "heldout")["old"]["value"] == 0.25


def test_pass_at_k_and_best_of_n():
    report, _ = context().run()
    passes = {each["name"]: each["points"] for each in block(report, "pass@k")["series"]}
    assert [each["value"] for each in passes["new"]] == [0.5, 1.0]
    assert [each["value"] for each in passes["old"]] == [0.0, 0.0]


def test_who_wins_by_score_and_by_a_judge():
    report, _ = context().run()
    assert row(report, "Who wins", "new")["Won"]["value"] == 2
    made = context(pairwise=2)
    made.judges[2] = Judge(
        {"kind": "pairwise", "order": "given"}, lambda given, subject: {"reasons": [], "verdict": "A"}
    )
    report, _ = made.run()
    assert row(report, "Who wins", "old")["Won"]["value"] == 2


def test_what_changed_most_leads_to_its_responses():
    report, cases = context().run()
    found = row(report, "Changed most", "p0")
    assert found["Change"]["value"] == 0.5
    assert len(carrying(cases, found["Prompt"]["tags"])) == 4


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
    assert len(carrying(cases, ["no score"])) == 1
