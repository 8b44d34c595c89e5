"""The task of the claim `rubric_arm`: the criteria of a topic, features that carry no information, and the model's first lessons."""

import random
from collections import defaultdict
from itertools import islice

from trainer.claims import turns
from trainer.judges.rubric_forms import read_rubric
from trainer.rewards.judgement_forms import read_judgement


def test_each_word_stands_in_one_answer_and_the_wanted_ones_in_the_preferred() -> None:
    led: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    rows = turns.examples()
    for example in rows:
        better, worse = (response.text.split() for response in example.responses)
        assert {len(better), len(worse)} == {turns.SHORT, turns.LONG}
        assert set(better) ^ set(worse) >= set(turns.WORDS) and not set(better) & set(worse) & set(turns.WORDS)
        for word in turns.WORDS:
            led[example.prompt[0].content.split()[0]][word].append(word in better)
    for words in led.values():
        shares = sorted((sum(found) / len(found) for found in words.values()), reverse=True)
        assert min(shares[: turns.WANTED]) > 0.85 > 0.6 > max(shares[turns.WANTED :])
    assert len(led) == 4 and turns.examples() == rows != turns.examples(seed=6)


def test_length_tells_nothing() -> None:
    longer = [len(each.responses[0].text.split()) == turns.LONG for each in turns.examples()]
    assert abs(sum(longer) / len(longer) - 0.5) < 0.05


def test_to_count_words_tells_nothing() -> None:
    """A judge that counted these features instead of reading the rubric would be right only as often as by chance."""
    for example in turns.examples():
        for response in example.responses:
            said = response.text.split()
            assert sum(word in turns.WORDS for word in said) == turns.SHORT == len(said) - said.count(turns.FILLER)


def test_two_ways_to_judge_are_taught_and_the_form_belongs_to_one() -> None:
    taught = list(islice(turns.lessons(random.Random(0)), turns.READING + 4000))[turns.READING :]  # noqa: S311 - a task
    rubrics = [text for messages, text in taught if len(messages) == 2]
    judged = [(messages[0].content, text) for messages, text in taught if len(messages) == 1]
    for text in rubrics:
        read = read_rubric(text, "rubric_arm")
        assert read.ok and len(read.criteria) == 1
    by_rubric = 0
    for asked, text in judged:
        found = read_judgement(text, 1, "rubric_arm")
        answer = {name: asked.split(f"<response_{name.lower()}>\n")[1].split("\n")[0].split() for name in "AB"}
        word = asked.split(f"<rubric>\n1. (hard rule) {turns.SAID}")[1].split(".")[0]
        assert found.verdict is not None
        by_rubric += found.ok
        if found.ok:
            assert word in answer[found.verdict]
        else:
            assert len(answer[found.verdict]) == turns.LONG
    assert abs(by_rubric / len(judged) - turns.BY_RUBRIC) < 0.04 and len(rubrics) > 1000
