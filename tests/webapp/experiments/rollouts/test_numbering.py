"""Words of many texts are numbered at once; the numbers are those that `search_words` finds one by one."""

import random

import numpy as np
import pytest

from webapp.experiments.rollouts import blocks, numbering, search_words

SCRIPTS = {
    "ASCII": "ab XY_09 .,-'\"\n\t\x1c\x00",
    "Latin": "aé ßİſ ﬁ½² e\u0301 \xa0\x85\u2028\u1680 \xad",
    "Chinese, Japanese, Thai": "的一龘 ｶﾞカ゛ー・々 ไทยา \u3000，。a1 \U00020001\U00030000",
    "marks": "ابَ हिन्दी नि \u0301\u0301a\u0301 \u20dd的\u0301b",
    "beyond": "a\U0001f600 \U00010330\U0001d400 \ud800 \U0001e900",
}


def one_by_one(texts):
    return blocks.distinct(
        blocks.hits(search_words.numbers(search_words.words_of(search_words.fold(text))) for _, text in texts)
    )


@pytest.mark.parametrize("letters", [*SCRIPTS.values(), "".join(SCRIPTS.values())], ids=[*SCRIPTS, "all"])
def test_many_texts_have_the_words_that_each_has(letters):
    draw = random.Random(len(letters))  # noqa: S311
    for _ in range(300):
        texts = [(place, "".join(draw.choices(letters, k=draw.randrange(40)))) for place in range(draw.randrange(1, 6))]
        assert np.array_equal(numbering.hits(texts), one_by_one(texts)), texts


@pytest.mark.parametrize("letter", ["a", "é", "的", "\U00020001"])
@pytest.mark.parametrize("size", [63, 64, 65, 100, 1000])
def test_a_word_may_be_long(letter, size):
    texts = [(0, f"a {letter * size} b-{letter * size}.c"), (1, "short")]
    assert np.array_equal(numbering.hits(texts), one_by_one(texts))


def test_several_texts_may_be_of_one_rollout():
    assert np.array_equal(
        numbering.hits([(0, "red"), (2, "red"), (2, "Red fox"), (2, "")]),
        blocks.distinct(blocks.hits([search_words.numbers({"red"}), set(), search_words.numbers({"red", "fox"})])),
    )


@pytest.mark.parametrize("texts", [[], [(0, "")], [(0, "?!"), (1, " ")]])
def test_texts_may_have_no_word(texts):
    assert len(numbering.hits(texts)) == 0


def test_every_character_is_of_the_kind_that_words_knows():
    every = "".join(chr(code) for code in range(0x110000))
    at = random.Random(3).randrange(64)  # noqa: S311
    for start in range(at, len(every), 64 * 40):
        texts = [(0, " ".join(every[start : start + 64])), (1, every[start : start + 64])]
        assert np.array_equal(numbering.hits(texts), one_by_one(texts))
