"""Hints that fade: the part of the reference reasoning that a step shows, and the text of the prompt about it."""

import pytest

from trainer.config.sections.hint import Hint
from trainer.contracts import Example
from trainer.contracts.hints import pass_rate_of, reasoning_of
from trainer.curriculum.ahrl import hint_for, hint_text

TEN = tuple(range(10))


class Letters:
    """A tokenizer whose tokens are letters."""

    def decode(self, tokens: list[int], skip_special_tokens: bool = False) -> str:
        return "".join("abcdefghi\ufffd"[token] for token in tokens)


def test_a_step_shows_the_first_tokens_and_fewer_the_more_often_a_prompt_is_solved() -> None:
    hint = Hint(p0=0.5, gamma=0.1)
    assert hint_for(hint, TEN, 1.0, 1) == TEN[:5]
    assert hint_for(hint, TEN, 1.0, 8) == TEN[:2]  # 0.5 exp(-0.7) = 0.248: 2.48 tokens
    assert hint_for(hint, TEN, 0.5, 8) == TEN[:4]  # 0.5 exp(-0.35) = 0.352
    assert hint_for(hint, TEN, 0.0, 10_000) == TEN[:5]
    assert hint_for(hint, TEN, 1.0, 1000) == ()


def test_a_prompt_without_a_pass_rate_counts_as_was_said() -> None:
    assert hint_for(Hint(p0=1.0, gamma=1.0, unknown=1.0), TEN, None, 2) == TEN[:4]
    assert hint_for(Hint(p0=1.0, gamma=1.0, unknown=0.0), TEN, None, 2) == TEN


def test_a_torn_letter_is_not_shown_and_no_letter_is_no_hint() -> None:
    assert hint_text(Letters(), (0, 1, 9)).splitlines()[1] == "ab"
    assert hint_text(Letters(), (9,)) == ""
    assert hint_text(Letters(), ()) == ""


def example(**fields: object) -> Example:
    return Example.model_validate({"key": "e", "prompt": [{"role": "user", "content": "?"}], **fields})


def test_reasoning_is_what_the_file_names_so_and_else_the_reference() -> None:
    assert reasoning_of(example(meta={"reasoning": " first "}, reference="7")) == "first"
    assert reasoning_of(example(meta={"reasoning": "  "}, reference="7")) == "7"
    assert reasoning_of(example(meta={"reasoning": 3})) == ""


@pytest.mark.parametrize("value", [True, "0.5", 1.5, -0.1, None])
def test_what_is_no_share_is_no_pass_rate(value: object) -> None:
    assert pass_rate_of(example(meta={"pass_rate": value})) is None


def test_a_pass_rate_is_a_number_from_0_to_1() -> None:
    assert [pass_rate_of(example(meta={"pass_rate": value})) for value in (0, 0.25, 1)] == [0.0, 0.25, 1.0]


def test_what_the_data_lacks_is_said_with_its_number() -> None:
    train = {"examples": 40, "reasonings": 28, "rated": 30}
    said = {problem.path: problem.message for problem in Hint().data_problems(train)}
    assert set(said) == {"hint.without", "hint.unknown"}
    assert said["hint.without"].startswith("12 of 40 training prompts have neither")
    assert said["hint.unknown"].startswith("10 of 40 training prompts (25%) have no pass rate yet")
    assert not list(Hint(without="plain", unknown=0.0).data_problems(train))
    (none,) = Hint(without="drop", unknown=0.5).data_problems(train | {"reasonings": 0})
    assert none.path == "hint"


def test_a_hint_where_every_prompt_is_solved_or_none_is_refused_at_its_field() -> None:
    train = {"examples": 40, "reasonings": 40, "rated": 40}
    (solved,) = Hint().data_problems(train | {"rated_solved": 40})
    assert solved.path == "hint" and "all 40 training prompts were always solved" in solved.message
    (never,) = Hint(gamma=0.1).data_problems(train | {"rated_unsolved": 40})
    assert never.path == "hint.gamma" and "none of the 40 training prompts was ever solved" in never.message
    assert not list(Hint(gamma=0.0).data_problems(train | {"rated_unsolved": 40})), (
        "a hint that stays is what they need"
    )
    for counts in ({"rated_solved": 39, "rated_unsolved": 1}, {"rated_solved": 1, "rated_unsolved": 39}):
        assert not list(Hint().data_problems(train | counts))
    some = train | {"rated": 30, "rated_solved": 30}
    assert not list(Hint(unknown=0.5).data_problems(some)), "of ten nobody knows"


def test_where_some_pass_rates_are_known_it_is_said_which_share_is_not_and_what_happens_instead() -> None:
    train = {"examples": 40, "reasonings": 40, "rated": 30}
    unknown = "10 of 40 training prompts (25%) have no pass rate yet (`meta.pass_rate`)"
    assert list(Hint(unknown=0.5).data_notes(train)) == [
        f"{unknown}: their hint fades as if it were 0.5 (`hint.unknown`)"
    ]
    (solved,) = Hint(unknown=0.0).data_notes(train | {"rated_solved": 30})
    assert solved == (
        f"{unknown}: their hint never fades (`hint.unknown`); the other 30 were always solved, so a hint can teach nothing there"
    )
    (never,) = Hint(unknown=0.5).data_notes(train | {"rated_unsolved": 30})
    assert never.endswith("; none of the other 30 was ever solved, so their hint never fades")
    (plain,) = Hint(without="plain").data_notes({"examples": 40, "reasonings": 30, "rated": 40})
    assert plain == (
        "10 of 40 training prompts (25%) have no reference reasoning and are trained on without a hint (`hint.without`)"
    )
    assert not list(Hint(unknown=0.5).data_notes(train | {"rated": 40})), "all is known"


def test_a_hint_that_never_fades_by_what_the_unknown_ones_count_as_is_refused() -> None:
    train = {"examples": 40, "reasonings": 40, "rated": 30, "rated_unsolved": 30}
    (gamma,) = Hint(unknown=0.0).data_problems(train)
    assert gamma.path == "hint.gamma"
    assert gamma.message.startswith(
        "10 of 40 training prompts (25%) have no pass rate yet (`meta.pass_rate`) and count as"
    )
    assert (
        "never solved (`hint.unknown`), and none of the others was ever solved, so no hint would fade" in gamma.message
    )
    assert not list(Hint(unknown=0.5).data_problems(train)), "the hints of ten fade"
    assert not list(Hint(unknown=0.0).data_problems(train | {"rated_unsolved": 29}))
