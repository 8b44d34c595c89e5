"""The pool of demonstrations."""

from collections import Counter

from trainer.claims import pool, toy
from trainer.rubrics import score_rubric


def test_topics_are_rarer_and_rarer_and_asked_for_alike() -> None:
    rows = pool.demonstrations(3)
    trained = Counter(row.domain for row in rows if row.split == "train")
    assert trained.total() == pool.POOL and trained["ant"] > 400 and 0 < trained["hen"] < 20
    assert set(Counter(row.domain for row in rows if row.split == "heldout").values()) == {pool.HELD_OUT}
    right = [score_rubric(row.rubric, row.reference).score for row in rows if row.rubric and row.reference]
    assert 0.93 < sum(score or 0.0 for score in right) / len(rows) < 0.98, (
        "one in twenty is wrong, now and then right by chance"
    )
    other = pool.demonstrations(4)
    assert [row.rubric for row in rows[-8:]] != [row.rubric for row in other[-8:]], (
        "each seed asks for syllables of its own"
    )


def test_an_answer_has_room_for_one_domain_and_not_for_both() -> None:
    rows = toy.halves()
    wanted = {domain: {row.meta["reasoning"] for row in rows if row.domain == domain} for domain in toy.HALVES}
    assert {len(each) for each in wanted.values()} == {4} and not wanted["first"] & wanted["second"]
    said = " ".join(sorted(wanted["first"]))
    worth = {
        domain: {score_rubric(r.rubric, said).score for r in rows if r.rubric and r.domain == domain}
        for domain in toy.HALVES
    }
    assert worth == {"first": {1.0}, "second": {0.0}}
