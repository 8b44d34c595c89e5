"""Hints about the structure of a rubric: texts that get a hint, and texts that do not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import SHARED, needs_shared
from trainer.contracts import Criterion, Rubric, VerifierSpec, jsonlines
from trainer.rubrics.structure import DraftCriterion, compound, lines, structural_hints, vague


def codes(*rubric: DraftCriterion) -> list[tuple[str, int | None, int | None]]:
    return [(hint.code, hint.criterion, hint.other) for hint in structural_hints(rubric)]


SOUND = (
    DraftCriterion("Names the year of the treaty.", 5),
    DraftCriterion("Quotes one sentence of the original.", 3),
    DraftCriterion("Apologises to the reader.", -4),
)


def test_a_sound_rubric_gets_no_hint():
    assert codes(*SOUND) == []


@pytest.mark.parametrize(
    "text",
    [
        "Names the cause and gives an example.",
        "Names the cause and then explains it.",
        "Is clear and concise.",
        "The tone is both warm and respectful",
        "Is written in French, and it has three stanzas.",
        "Mentions the fee as well as explains who pays it.",
        "Uses a table and/or a list.",
        "Lists the steps and names the tools.",
        "Names the year. Explains why it matters.",
        "Names the year; explains why it matters.",
        "Mentions fever, cough, and fatigue.",
        "说明原因，并且给出例子。",
        "给出原因，并举一个例子。",
        "给出公式并解释它",
        "回答清晰且完整。",
        "提到发烧、咳嗽和疲劳。",
    ],
)
def test_two_checks_in_one_criterion_are_pointed_at(text):
    assert compound(text)


@pytest.mark.parametrize(
    "text",
    [
        "Names the pros and cons.",
        "Says what is right and wrong.",
        "Says that the capitals are Paris and Rome.",
        "Says how salt and pepper are used.",
        "Mentions side effects and uses of the drug.",
        "States the date and the names of both parties.",
        "Mentions one of: fever, cough, or fatigue.",
        "Clearly and plainly states the price.",
        "Contains the phrase “wait and see, it is fine”.",
        "Says that Dr. Lee was wrong.",
        "Ends with “stop; go”.",
        "说明同时间发生的事。",
        "提到术后并发症。",
        "说明如何合并包含重复项的列表。",
        "给出暂且可用的办法。",
        "",
    ],
)
def test_one_check_is_left_in_peace_whatever_its_conjunctions(text):
    assert not compound(text)


def test_vague_words_are_quoted_as_written_and_once():
    assert vague("Is Helpful, helpful and of high quality, etc.") == ["Helpful", "helpful", "high quality", "etc."]
    assert vague("Sagt etwas in angemessener Länge.") == []
    assert vague("语言流畅，内容全面。") == ["流畅", "全面"]
    assert vague("Contains the word “good”.") == []


def test_a_near_duplicate_names_the_earlier_criterion():
    later = DraftCriterion("The response names the year of that treaty", 2)
    assert codes(*SOUND, later) == [("duplicate", 3, 0)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Has at least three bullets.", "Has at most three bullets."),
        ("Has 3 bullet points in the list.", "Has 4 bullet points in the list."),
        ("Names the first king of Spain.", "Names the last king of Spain."),
    ],
)
def test_criteria_that_differ_in_a_number_or_a_turning_word_are_not_duplicates(first, second):
    assert codes(DraftCriterion(first), DraftCriterion(second)) == []


def test_opposites_contradict_when_both_are_rewarded_and_mirror_when_one_is_punished():
    says, avoids = "Mentions the price of the ticket.", "Does not mention the price of the ticket."
    assert codes(DraftCriterion(says, 3), DraftCriterion(avoids, 2)) == [("contradiction", 1, 0)]
    mirrored = structural_hints([DraftCriterion(says, -3), DraftCriterion(avoids, 2)])
    assert [(hint.code, hint.criterion) for hint in mirrored] == [("duplicate", 1)]
    assert "twice" in mirrored[0].message


def test_counts_that_exclude_each_other_contradict():
    short = DraftCriterion("Is short.", 2, VerifierSpec(name="word_count", args={"max": 20}))
    long = DraftCriterion("Fills a page.", 2, VerifierSpec(name="word_count", args={"min": 200}))
    (hint,) = structural_hints([short, long])
    assert (hint.code, hint.criterion, hint.other) == ("contradiction", 1, 0)
    assert "at most 20" in hint.message and "at least 200" in hint.message
    pitfall = DraftCriterion("Fills a page.", -2, long.verifier)
    assert codes(short, pitfall) == []


def test_the_same_check_under_other_words_is_a_duplicate():
    spec = VerifierSpec(name="bullet_count", args={"exactly": 3})
    assert codes(DraftCriterion("A list of three.", 2, spec), DraftCriterion("Three points, bulleted.", 1, spec)) == [
        ("duplicate", 1, 0)
    ]


def test_a_verifier_that_cannot_run_says_which_argument():
    (hint,) = structural_hints(
        [*SOUND, DraftCriterion("Short enough.", 1, VerifierSpec(name="word_count", args={"max": -1}))]
    )
    assert hint.code == "verifier" and "max" in hint.message


def test_avoiding_a_fault_at_a_cost_turns_the_sign_twice():
    assert codes(*SOUND, DraftCriterion("Avoids jargon.", -2)) == [("negated", 3, None)]
    assert codes(*SOUND, DraftCriterion("Avoids jargon.", 2)) == []
    assert codes(*SOUND, DraftCriterion("Does not mention the risks.", -2)) == []


def test_size_and_sign_of_the_whole_are_told_of_the_rubric_and_not_of_a_line():
    assert codes() == [("too_few", None, None)]
    assert codes(DraftCriterion("Apologises.", -1), DraftCriterion("Repeats the question.", -2)) == [
        ("no_positive", None, None)
    ]
    eleven = [DraftCriterion(f"Names fact number {n}.", 1) for n in range(11)]
    assert codes(*eleven) == [("too_many", None, None)]
    assert codes(*eleven[:10], DraftCriterion("  ")) == []  # a line that is not written yet does not count


def test_positions_are_those_of_the_rubric_with_its_empty_lines():
    assert codes(DraftCriterion(""), DraftCriterion("Is good."), DraftCriterion("Names the year.")) == [
        ("vague", 1, None)
    ]


def test_a_stored_rubric_is_checked_alike():
    rubric = Rubric(
        criteria=(Criterion(id="a", text="Is good.", points=1), Criterion(id="b", text="Rhymes.", points=2))
    )
    assert [hint.code for hint in structural_hints(lines(rubric))] == ["vague"]


@given(st.lists(st.tuples(st.text(max_size=200), st.floats(-10, 10)), max_size=8))
@settings(max_examples=30, deadline=None)
def test_any_text_is_taken_and_every_position_exists(rubric):
    for hint in structural_hints([DraftCriterion(text, points) for text, points in rubric]):
        assert hint.message
        assert all(at is None or 0 <= at < len(rubric) for at in (hint.criterion, hint.other))


@pytest.mark.parametrize("run", ["and " * 5000, ", a" * 7000, "、和" * 7000, "(" * 9000, "“" * 9000, "a" * 20_000])
def test_hostile_text_is_answered(run):
    """With a pattern that backtracks, this test would not end."""
    assert all(hint.message for hint in structural_hints([DraftCriterion(run), DraftCriterion(run + "x")]))


@needs_shared
def test_on_the_public_rubrics_most_criteria_get_no_hint():
    rows = jsonlines.rows((SHARED / "healthbench_sample" / "healthbench_30.jsonl").read_text())
    texts = [item["criterion"] for row in rows for item in row["rubrics"]]
    flagged = sum(bool(compound(text) or vague(text)) for text in texts)
    assert 0.2 < flagged / len(texts) < 0.5  # HealthBench writes long criteria; a hint on every line would not help
