"""The task of judging pairs: the questions that it asks, the pairs that it leaves out and counts, and its measures."""

from collections.abc import Mapping
from typing import Any

import pytest

from trainer.config import RECIPES, resolve
from trainer.config.metrics import judge
from trainer.contracts import Example, Message, PartResult, Preference, Reason, Response
from trainer.judges.kinds.rationales import FLAWS, RESTS_ON
from trainer.loops.prompts.task_questions import posed_prompts
from trainer.loops.session.errors import RunFailed
from trainer.tasks import TASKS, AnsweredQuestion, Posed
from trainer.tasks.judging_metrics import is_generic, of_evaluation, of_step
from trainer.tasks.judging_pairs import BLANK, EQUAL, FEW, MANY, NO_REASONS, TIED, UNDECIDED, JudgingPairs

A, B = Response(id="a", text="Nine minutes."), Response(id="b", text="Quite long.")


def judged(strength: int | None, *reasons: str, rater: str = "r1", a: str = "a", b: str = "b") -> Preference:
    verdict: Any = "cannot_assess" if strength is None else "compared"
    return Preference(
        a=a, b=b, strength=strength, verdict=verdict, rater=rater, reasons=tuple(Reason(text=text) for text in reasons)
    )


def example(*preferences: Preference, key: str = "row", b: Response = B, split: Any = "train") -> Example:
    prompt = (Message(role="user", content="How long do eggs boil?"),)
    return Example(key=key, prompt=prompt, split=split, responses=(A, b), preferences=preferences)


def task(**changes: Any) -> JudgingPairs:
    raw = {"data": {"form": "lines", **changes.pop("data", {})}, "reward": {"arm": "outcome", "matcher": "words"}}
    return JudgingPairs(resolve("judge", {**raw, **changes}))  # type: ignore[arg-type]


def test_a_training_pair_is_asked_about_once_and_a_held_out_pair_in_both_orders():
    found = list(task().pose(example(judged(-2, "Names the minutes.")), held_out=False))
    assert len(found) == 1 and isinstance(found[0], Posed)
    both = list(task().pose(example(judged(-2, "Names the minutes.")), held_out=True))
    assert [each.facts["order"] for each in both] == ["given", "swapped"]
    assert [each.facts["label"] for each in both] == [-1, 1]
    assert len({each.example.key for each in both}) == 2 and {each.facts["pair"] for each in both} == {"row · a/b"}
    shown = [each.example.prompt[-1].content for each in both]
    assert shown[0].index("Nine") < shown[0].index("Quite") and shown[1].index("Quite") < shown[1].index("Nine")
    assert all(each.facts["reasons"] == ["Names the minutes."] for each in both)


def test_the_order_in_training_is_drawn_by_seed_and_pair():
    rows = [example(judged(-1), key=f"row-{number}") for number in range(40)]

    def orders(seed: int) -> list[str]:
        return [each.facts["order"] for row in rows for each in task(seed=seed).pose(row, held_out=False)]

    assert orders(0) == orders(0) != orders(1)
    assert 8 < orders(0).count("given") < 32


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (example(judged(-1), judged(2, rater="r2")), TIED),
        (example(judged(0)), TIED),
        (example(judged(None)), UNDECIDED),
        (example(judged(-1), b=Response(id="b", text="Nine minutes.")), EQUAL),
    ],
)
def test_what_has_no_label_is_left_out_by_its_reason(given: Example, reason: str):
    assert list(task().pose(given, held_out=True)) == [reason]


def test_reasons_are_those_of_the_side_of_most_each_once():
    votes = (
        judged(-1, "Names the minutes.", " "),
        judged(1, "Is short.", "Names the minutes.", rater="r2", a="b", b="a"),
        judged(2, "Sounds natural.", rater="r3"),
    )
    blank, posed = task().pose(example(*votes), held_out=False)
    assert blank == BLANK and posed.facts["reasons"] == ["Names the minutes.", "Is short."]


def test_the_number_of_reasons_decides_where_it_is_asked_for():
    one = example(judged(-1, "Names the minutes."))
    assert list(task(data={"reasons_at_least": 3}).pose(one, False)) == [FEW]
    two = example(judged(-1, "Names the minutes.", "Is short."))
    assert list(task(data={"reasons_at_most": 1}).pose(two, False)) == [MANY]
    hybrid = task(reward={"arm": "hybrid", "matcher": "words"})
    assert list(hybrid.pose(example(judged(-1)), False)) == [NO_REASONS]


def test_arms_with_reasons_need_pairs_with_reasons():
    for arm, count in (("outcome", "pairs"), ("rationale", "reasoned_pairs"), ("hybrid", "reasoned_pairs")):
        config: Any = resolve("judge", {"reward": {"arm": arm}})
        (need,) = config.needs(RECIPES["judge"].needs)
        assert need.count == count and ("reasons" in need.words) == (arm != "outcome")
        assert need.left_out == RECIPES["judge"].needs[0].left_out
    schema = RECIPES["judge"].schema
    assert schema.suited({"train": {"pairs": 3}, "heldout": {"reasoned_pairs": 1}}) == {"reward": {"arm": "outcome"}}
    assert schema.suited({"train": {"pairs": 3, "reasoned_pairs": 1}, "heldout": {}}) == {}


def test_long_keys_stay_apart():
    both = list(task().pose(example(judged(-1), key="k" * 200), held_out=True))
    assert len({each.example.key for each in both}) == 2 and all(len(each.example.key) <= 200 for each in both)


def test_one_sided_data_is_remarked_on():
    (posed,) = task().pose(example(judged(-1)), held_out=False)
    (remark,) = task().remarks([posed, posed])  # type: ignore[list-item]
    assert "every training question" in remark
    given, swapped = task().pose(example(judged(-1)), held_out=True)
    assert not list(task().remarks([given, swapped]))  # type: ignore[list-item]


class Tokenizer:
    def apply_chat_template(self, conversation: Any, **kwargs: Any) -> str:
        return str(conversation[-1]["content"])

    def __call__(self, text: str, **kwargs: Any) -> Mapping[str, list[int]]:
        return {"input_ids": list(text.encode())}


def test_questions_of_a_run_are_counted_with_what_is_left_out():
    config: Any = resolve(
        "judge", {"data": {"form": "lines"}, "reward": {"arm": "outcome"}, "evaluation": {"max_examples": 1}}
    )
    rows = [example(judged(-1), key="one"), example(judged(0), key="two")]
    held = [example(judged(-1), key=key, split="heldout") for key in ("three", "four")]
    sets = posed_prompts([*rows, *held], Tokenizer(), config, TASKS["judge"](config))
    assert len(sets.train) == 1 and len(sets.heldout) == 2, "one held-out pair in both orders"
    assert any(line == f"1 {TIED}" for line in sets.left_out)
    with pytest.raises(RunFailed, match="nothing to train on"):
        posed_prompts(rows[1:], Tokenizer(), config, TASKS["judge"](config))


def answered(
    pair: str, order: str, label: int, verdict: int | None, rationale: float | None = None, example: str = ""
) -> AnsweredQuestion:
    right = verdict is not None and verdict * label > 0
    shown: dict[str, Any] = {
        "verdict": verdict,
        "label": label,
        "reasons": [] if verdict is None else ["About minutes"],
    }
    parts = {"outcome": PartResult(name="outcome", kind="outcome", value=float(right), shown=shown)}
    if rationale is not None:
        seen: dict[str, Any] = {"rc": rationale, "hits": [rationale > 0.5]}
        parts["rationale"] = PartResult(name="rationale", kind="rationale", value=rationale, shown=seen)
    facts = {"pair": pair, "order": order, "label": label, "reasons": [], "prompt": [], "answers": ["Nine minutes."]}
    facts["example"] = example or pair
    return AnsweredQuestion(f"{pair} {order}", facts, "", parts)


def test_an_evaluation_counts_each_pair_once():
    answers = [
        answered("one", "given", -1, -2, 1.0),
        answered("one", "swapped", 1, 1, 0.5),
        answered("two", "given", -1, -1),
        answered("two", "swapped", 1, -1),
        answered("three", "given", 1, None),
        answered("three", "swapped", -1, 1),
    ]
    found = of_evaluation(answers)
    assert found["eval/accuracy"] == pytest.approx((1 + 0.5 + 0) / 3) and found["eval/pairs"] == 3
    assert found["eval/accuracy_low"] < found["eval/accuracy"] < found["eval/accuracy_high"]
    assert found["eval/rc"] == 0.75 and found["eval/reasoned_pairs"] == 1 and "eval/rc_low" not in found
    assert found["eval/consistent"] == 0.5 and found["eval/ordered_pairs"] == 2
    assert found["eval/unreadable"] == pytest.approx(1 / 6) and found["eval/first"] == 3 / 5
    assert found["eval/unmatched"] == 0.5 and found["eval/generic"] == 0.0


def test_what_the_matcher_could_not_match_is_counted_and_no_part_of_the_means():
    lost = answered("two", "given", -1, -1)
    shown: Any = {"human": ["Names the minutes."], "reasons": ["About minutes"]}
    lost.parts["rationale"] = PartResult(name="rationale", kind="rationale", value=None, why="no rows", shown=shown)  # type: ignore[index]
    kept = answered("one", "given", -1, -1, 0.75)
    kept.parts["rationale"].shown.update(shown)
    for found, key in ((of_step([kept, lost]), "judging"), (of_evaluation([kept, lost]), "eval")):
        assert found[f"{key}/rc"] == 0.75 and found[f"{key}/not_matched"] == 0.5
    assert of_evaluation([kept, lost])["eval/reasoned_pairs"] == 1


def test_shares_of_flaws_are_of_the_reasons_that_were_tagged():
    def tagged(*tags: Any) -> AnsweredQuestion:
        found = answered("one", "given", -1, -1)
        shown = {"reasons": ["x"] * len(tags), **({} if None in tags and len(tags) == 1 else {"tags": list(tags)})}
        found.parts["flaws"] = PartResult(name="flaws", kind="flaws", value=None, shown=shown)  # type: ignore[index]
        return found

    empty, both = {"rests_on": "evidence", "flaws": []}, {"rests_on": "generic", "flaws": ["F2", "F5"]}
    found = of_step([tagged(empty, both, None), tagged(empty), tagged(None), tagged()])
    assert found["judging/untagged"] == 2 / 5, "one that the judge passed over, one whose answer could not be read"
    assert found["judging/flawed"] == found["judging/flaws/F2"] == found["judging/flaws/F5"] == pytest.approx(1 / 3)
    assert found["judging/flaws/F1"] == 0.0 and found["judging/rests_on/evidence"] == pytest.approx(2 / 3)
    assert not [key for key in of_step([answered("one", "given", -1, -1)]) if "flaw" in key or "untagged" in key]


def test_the_curves_of_flaws_are_those_that_judges_tag():
    assert list(judge.FLAWS) == list(FLAWS) and list(judge.RESTS_ON) == list(RESTS_ON)


def test_pairs_of_one_example_are_no_independent_cases():
    def accuracy(examples: int) -> tuple[float, float, float]:
        """40 pairs, of which every second one is judged rightly. Pairs of one example get the same judgement."""
        found = of_evaluation(
            [
                answered(f"pair {n}", "given", -1, -1 if (n % examples) % 2 else 1, example=f"row {n % examples}")
                for n in range(40)
            ]
        )
        return found["eval/accuracy"], found["eval/pairs"], found["eval/accuracy_high"] - found["eval/accuracy_low"]

    alone, ten_each = accuracy(40), accuracy(4)
    assert alone[:2] == ten_each[:2] == (0.5, 40)
    assert ten_each[2] > 2 * alone[2]


def test_orders_agree_by_all_samples_of_both_and_not_by_the_last_ones() -> None:
    answers = [answered("one", "given", -1, verdict) for verdict in (-2, None, 1)]
    answers += [answered("one", "swapped", 1, verdict) for verdict in (2, 1, -1)]
    answers += [answered("two", "given", -1, None), answered("two", "swapped", 1, 1)]
    found = of_evaluation(answers)
    # of six ways to take a readable verdict from each order, the first agrees with two, the other with one
    assert found["eval/consistent"] == 0.5 and found["eval/ordered_pairs"] == 1
    assert of_evaluation([*answers[:1], *answers[3:5]])["eval/consistent"] == 1.0


def test_a_step_leaves_out_what_is_not_defined():
    found = of_step([answered("one", "given", -1, None)])
    assert found == {"judging/accuracy": 0.0, "judging/unreadable": 1.0}
    tied = of_step([answered("one", "given", -1, 0), answered("two", "given", 1, 2)])
    assert tied["judging/tie"] == 0.5 and tied["judging/first"] == 0.0 and tied["judging/accuracy"] == 0.5


def test_a_reason_is_generic_where_it_names_nothing_of_the_case():
    assert is_generic("A is clearly the better answer.", "Nine minutes. Quite long.")
    assert is_generic("Good.", "Nine minutes.")
    assert not is_generic("A names the minutes.", "Nine minutes.")
