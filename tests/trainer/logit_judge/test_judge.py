"""Yes against no: shared computation gives the same result as each prompt by itself."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.inference.models import load_model, load_tokenizer
from trainer.logit_judge.judge import LogitJudge, alike, split
from trainer.logit_judge.words import AnswerTokens

CONVERSATION = "The user asked for three rivers of France. The answer was: Loire, Seine and the Rhône. " * 3


@pytest.fixture(scope="module")
def tokenizer(tiny_dir: Path) -> Any:
    return load_tokenizer(tiny_dir)


@pytest.fixture(scope="module")
def judge(tiny_dir: Path, tokenizer: Any) -> LogitJudge:
    return LogitJudge(load_model(tiny_dir), tokenizer)


def tokens(tokenizer: Any, text: str) -> tuple[int, ...]:
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def plainly(tiny_dir: Path, words: AnswerTokens, prompt: tuple[int, ...]) -> tuple[float, float]:
    """(margin, mass) by a model that has neither our attention nor our cache, one prompt at a time."""
    with torch.no_grad():
        p = torch.softmax(load_model(tiny_dir)(torch.tensor([prompt])).logits[0, -1].double(), dim=-1)
    yes, no = p[list(words.yes)].sum(), p[list(words.no)].sum()
    return float((yes / no).log()), float(yes + no)


def test_readings_equal_those_of_each_prompt_alone(judge: LogitJudge, tokenizer: Any, tiny_dir: Path) -> None:
    criteria = ["Names three rivers", "Is short", "Names the Loire and says where it ends, or at least where it begins"]
    texts = [f"{CONVERSATION}Criterion: {text}. Met?" for text in criteria * 3]
    texts += ["Something else. Met?", f"{CONVERSATION * 3}Criterion: {'very ' * 120}long. Met?", CONVERSATION, "x"]
    prompts = [tokens(tokenizer, text) for text in texts]
    words = AnswerTokens.of(tokenizer)
    for prompt, reading in zip(prompts, judge.read(prompts), strict=True):
        margin, mass = plainly(tiny_dir, words, prompt)
        assert reading.margin == pytest.approx(margin, abs=1e-4)
        assert reading.mass == pytest.approx(mass, abs=1e-4)
        assert reading.prompt_tokens == len(prompt)


def test_the_conversation_is_computed_once(judge: LogitJudge, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = [tokens(tokenizer, f"{CONVERSATION}Criterion {letter * 40}") for letter in "abcdefghijklmnopqrst"]
    computed = []
    forward = judge._forward
    monkeypatch.setattr(judge, "_forward", lambda *given: computed.append(len(given[1].tokens_N)) or forward(*given))
    readings = judge.read(prompts)
    shared = len(tokens(tokenizer, f"{CONVERSATION}Criterion "))
    assert sum(computed) == shared + 20 * 40
    assert [reading.cached_tokens for reading in readings] == [0] + 19 * [shared]


def test_what_all_conversations_begin_with_is_computed_once(
    judge: LogitJudge, tokenizer: Any, tiny_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = "You are a judge. Answer yes or no. "
    texts = [f"{rules}{letter * 80} criterion {number}" for letter in "abc" for number in (1, 2)]
    prompts = [tokens(tokenizer, text) for text in texts]
    computed: list[int] = []
    forward = judge._forward
    monkeypatch.setattr(judge, "_forward", lambda *given: computed.append(len(given[1].tokens_N)) or forward(*given))
    readings = judge.read(prompts)
    assert sum(computed) == len(rules) + 3 * (80 + len(" criterion ") + 2)
    assert [reading.cached_tokens > len(rules) for reading in readings] == [False, True] * 3
    for prompt, reading in zip(prompts, readings, strict=True):
        assert reading.margin == pytest.approx(plainly(tiny_dir, AnswerTokens.of(tokenizer), prompt)[0], abs=1e-4)
    computed.clear()
    judge.read(prompts)
    assert sum(computed) == 3 * (80 + len(" criterion ") + 2), "the next calls begin with the same rules"


def test_order_and_neighbours_do_not_matter(judge: LogitJudge, tokenizer: Any) -> None:
    prompts = [tokens(tokenizer, f"{start} {end}") for start in (CONVERSATION, "Other") for end in ("a?", "b?", "ab")]
    forth, back = judge.read(prompts), judge.read(prompts[::-1])[::-1]
    assert [r.margin for r in forth] == pytest.approx([r.margin for r in back], abs=1e-4)


def test_the_same_prompt_twice_reads_the_same(judge: LogitJudge, tokenizer: Any) -> None:
    first, second = judge.read([tokens(tokenizer, CONVERSATION)] * 2)
    assert first.margin == second.margin


def test_prompts_the_model_cannot_see_are_refused(judge: LogitJudge) -> None:
    with pytest.raises(ValueError, match=r"prompts\[1\]: 2049 tokens; the model sees 1 to 2048"):
        judge.read([[1], [1] * 2049])
    with pytest.raises(ValueError, match=r"prompts\[0\]: 0 tokens"):
        judge.read([[]])


def test_nothing_asked_nothing_read(judge: LogitJudge) -> None:
    assert judge.read([]) == []


def test_groups_follow_conversations_not_the_words_of_the_template() -> None:
    start = list(range(5))
    one, two = [start + [10] * 40, start + [20] * 40]
    prompts = [one + [1], one + [2, 2], two + [1], two + [3], [99]]
    assert alike(prompts) == [[0, 1], [2, 3], [4]]
    assert split([one + [1], one + [2, 2]]) == 45


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=12))
def test_groups_are_stretches_and_leave_every_prompt_a_token(prompts: list[list[int]]) -> None:
    groups = alike(prompts)
    assert [i for group in groups for i in group] == list(range(len(prompts)))
    for group in groups:
        shared = split([prompts[i] for i in group])
        assert len({tuple(prompts[i][:shared]) for i in group}) == 1
        assert all(len(prompts[i]) > shared for i in group)


class Letters:
    """A tokenizer in which every character is a token, spaces too."""

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text]}


class Whole(Letters):
    """A tokenizer that also has some words as single tokens."""

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        known = {"Yes": 500, " Yes": 501, "No": 600}
        return {"input_ids": [known[text]]} if text in known else super().__call__(text)


class Same:
    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [1, *map(ord, text)]}


def test_writings_that_are_one_token_are_preferred() -> None:
    assert AnswerTokens.of(Whole()) == AnswerTokens(yes=(500, 501), no=(600,))


def test_every_writing_counts_and_ambiguous_beginnings_do_not() -> None:
    assert AnswerTokens.of(Letters()) == AnswerTokens(yes=(ord("Y"), ord("y")), no=(ord("N"), ord("n")))


def test_a_tokenizer_that_cannot_tell_is_refused() -> None:
    with pytest.raises(ValueError, match="same token"):
        AnswerTokens.of(Same())
