"""The task of the claim `mams`: the criteria of a topic, the knowledge of the judge of rubrics, and the model's first lessons."""

import asyncio
import random
from collections import defaultdict
from typing import Any

from trainer.claims import rubrics
from trainer.config import resolve
from trainer.contracts import Example, Message, Response
from trainer.judges.rubric_forms import read_rubric
from trainer.metrics.claims import PLANS
from trainer.metrics.claims.writers import CHECKABLE
from trainer.rewards import Item, Services
from trainer.rewards.kinds.writing import quality
from trainer.rewards.written_rubrics import ComparedPair

CONFIG: Any = resolve("rubric_writer", PLANS["mams"].config(PLANS["mams"].arm("both"), PLANS["mams"].shared, 0))


def score(*words: str) -> float | None:
    """The score that the judge of rubrics gives, with the settings of the plan's runs."""
    pair = ComparedPair(
        example="", conversation=(), chosen=Response(id="a", text=""), rejected=Response(id="b", text="")
    )
    asked = Example(key="row", prompt=(Message(role="user", content="fox 42"),))
    item = Item("train/1/0/0", asked, None, rubrics.written(words), 5, 60, facts=pair.facts)
    part = next(part for part in CONFIG.composition.parts if part.name == "quality")
    assert not part.asks_judge and not part.judge_kinds
    (found,) = asyncio.run(quality(part, [item], Services()))
    return found.value


def test_each_topic_wants_four_words_that_better_answers_have_more_often_and_no_other_word_tells() -> None:
    led: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    rows = rubrics.examples()
    for example in rows:
        better, worse = (set(response.text.split()) for response in example.responses)
        topic = example.prompt[0].content.split()[0]
        for word in CHECKABLE + rubrics.EMPTY:
            led[topic][word].append((word in better) - (word in worse))
    wanted = set()
    for words in led.values():
        found = sorted(words, key=lambda word: -sum(words[word]))
        leads = [sum(words[word]) / len(words[word]) for word in found]
        assert min(leads[: rubrics.WANTED]) > 0.55 > 0.2 > max(leads[rubrics.WANTED :])
        assert set(found[: rubrics.WANTED]) <= set(CHECKABLE)
        wanted.add(tuple(found[: rubrics.WANTED]))
    assert len(wanted) == len(led) == 8 and rubrics.examples() == rows != rubrics.examples(seed=6)


def test_the_judge_of_rubrics_counts_words_that_can_be_checked_once_each_and_knows_no_topic() -> None:
    a, b, c, d, e = CHECKABLE[:5]
    assert (score(a, b, c, d), score(a, b, c, d, e), score(a, a, b, b), score(a, rubrics.EMPTY[0])) == (4, 4, 2, 1)
    assert score(*rubrics.EMPTY[:4]) == 0


def test_what_is_taught_is_the_form_with_words_of_both_kinds_at_random() -> None:
    lessons = rubrics.lessons(random.Random(0))  # noqa: S311 - a task, not a secret
    said: list[str] = []
    for _ in range(500):
        messages, text = next(lessons)
        read = read_rubric(text, "openrubrics")
        assert read.ok and len(read.criteria) == rubrics.ITEMS and len(messages) == 2
        said += [criterion.text for criterion in read.criteria]
    share = sum(word in rubrics.EMPTY for word in said) / len(said)
    assert abs(share - len(rubrics.EMPTY) / len(CHECKABLE + rubrics.EMPTY)) < 0.04
