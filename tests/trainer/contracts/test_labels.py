"""Names that examples have. The most frequent ones are kept, and the others are not reported as absent."""

from trainer.contracts import labels
from trainer.contracts.labels import Labels


def test_the_most_frequent_come_first_and_the_empty_name_is_none() -> None:
    found = Labels.of({"code": 3, "": 9, "art": 3, "logic": 12})
    assert list(found.counts.items()) == [("logic", 12), ("art", 3), ("code", 3)]
    assert (found.words, Labels.of({"": 4}).words) == ("logic (12), art (3), code (3)", "")


def test_only_a_name_that_surely_nothing_has_is_lacking() -> None:
    assert Labels({"logic": 1}).lacks("code") and not Labels({"logic": 1}).lacks("logic")
    many = Labels.of({f"tag-{n:04}": 1 for n in range(labels.MOST + 5)})
    assert (len(many.counts), many.others) == (labels.MOST, 5)
    assert not many.lacks("tag-0502") and not many.lacks("nobody knows")
    assert many.words.endswith(f"tag-0011 (1) and {labels.MOST - 12 + 5} more")
