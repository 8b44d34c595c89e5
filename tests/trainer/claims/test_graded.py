"""The task whose difficulty is known."""

import random
from collections import Counter, defaultdict

from trainer.claims import toy
from trainer.rubrics import score_rubric


def test_difficulties_are_far_apart() -> None:
    chances = defaultdict(list)
    for level, places in toy.GRADES:
        chances[level].append(toy.chance(places, 4000))
    assert min(chances["easy"]) > 0.2
    assert min(chances["middle"]) > 0.03 and max(chances["middle"]) < 0.15
    assert max(chances["hard"]) < 0.02


def test_chances_are_those_of_answers_drawn_one_after_the_other() -> None:
    chooser, ranks = random.Random(0), range(1, len(toy.SYLLABLES) + 1)  # noqa: S311 - a task, not a secret
    answers = []
    for _ in range(300):
        said: set[int] = set()
        while len(said) < 6:
            said.update(chooser.choices(ranks, [1.0 / rank for rank in ranks]))
        answers.append(said)
    for places in ((2,), (5, 6), (5, 5, 1, 2), ()):
        assert toy.chance(places, 300, 6) == sum(set(places) <= said for said in answers) / 300


def test_hard_prompts_within_reach_are_parted_from_moderate_ones_as_the_stages_are() -> None:
    rates = defaultdict(list)
    for row in toy.near():
        rates[row.domain].append(row.meta["pass_rate"])
    assert min(rates["hard"]) > 0.01 and max(rates["hard"]) < 0.04 < min(rates["middle"])
    assert {key: rates[key] for key in ("easy", "middle")} == {
        key: [row.meta["pass_rate"] for row in toy.graded() if row.domain == key] for key in ("easy", "middle")
    }


def test_an_answer_says_all_or_is_worth_nothing() -> None:
    rows = toy.graded()
    assert len({row.key for row in rows}) == len(rows) == 80
    assert [row.domain for row in rows if row.split == "heldout"] == ["easy"] * 8 + ["middle"] * 12 + ["hard"] * 12
    rates = {row.domain: row.meta["pass_rate"] for row in rows}
    assert 0 < rates["hard"] <= 0.02 < rates["middle"] < rates["easy"], "the stages of plan `stages` part them so"
    hard = next(row for row in rows if row.domain == "hard")
    said = toy.ranked()
    wanted = [said[place - 1] for place in toy.GRADES[5][1]]
    assert hard.rubric
    for answer, worth in ((" ".join(wanted), 1.0), (wanted[0], 0.0)):
        assert score_rubric(hard.rubric, answer).score == worth


def test_the_wordy_model_is_taught_answers_of_many_lengths_and_the_other_of_one() -> None:
    def taught(*between: tuple[int, int]) -> Counter[int]:
        lessons = toy._lessons(random.Random(0), *between)  # type: ignore[arg-type]  # noqa: S311 - a task, not a secret
        return Counter(
            len(answer.split()) for answer, _ in zip((answer for _, answer in lessons), range(400), strict=False)
        )

    assert taught().keys() == {4}
    assert taught((2, 8)).keys() == set(range(2, 9))


def test_a_quarter_of_the_tailed_prompts_has_long_answers_whatever_is_learned() -> None:
    rows, said = toy.tailed(), toy.ranked()
    assert Counter(row.domain for row in rows if row.split == "train") == {"short": 36, "long": 12}
    lengths = {topic: toy.TAIL_SAID[level] for topic, (level, _) in zip(toy.TOPICS, toy.TAILS, strict=True)}
    lessons = toy._lessons(random.Random(0), lengths=lengths)  # noqa: S311 - a task, not a secret
    told = [
        (messages[0].content.split()[0], answer, len(messages))
        for messages, answer in (next(lessons) for _ in range(200))
    ]
    assert {len(answer.split()) for topic, answer, _ in told if lengths[topic] == 16} == {16}
    assert {len(answer.split()) for topic, answer, _ in told if lengths[topic] == 2} <= {2, 3, 4}, (
        "as many as a scaffold asks for"
    )
    long, short = (next(row for row in rows if row.domain == domain) for domain in ("long", "short"))
    assert long.rubric and short.rubric
    many = [*said[toy.TAILS[6][1][0] - 1 :][:15], said[toy.TAILS[0][1][0] - 1]]
    for rubric, answer, worth in (
        (long.rubric, " ".join(many), 1.0),
        (long.rubric, many[0], 0.0),
        (short.rubric, many[-1], 1.0),
        (short.rubric, " ".join(many), 0.0),
        (short.rubric, " ".join(many[:9]), -1.0),
    ):
        assert score_rubric(rubric, answer).score == worth
