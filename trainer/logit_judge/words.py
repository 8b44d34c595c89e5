"""The tokens that say yes and the tokens that say no."""

from dataclasses import dataclass
from typing import Any

YES, NO = "yes", "no"


@dataclass(frozen=True)
class AnswerTokens:
    """Token ids of each answer, ascending; no id is in both."""

    yes: tuple[int, ...]
    no: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: Any) -> "AnswerTokens":
        """The tokens of a tokenizer: every spelling (lower case, capitalised and upper case, with and without a leading space) that is one
        token.

        If no spelling of an answer is one token, the first token of each spelling counts. A token that could begin either answer,
        such as a lone space, is left out. Raises ValueError if no token of an answer is left.
        """
        yes, no = _tokens(tokenizer, YES), _tokens(tokenizer, NO)
        if not (yes - no and no - yes):
            raise ValueError(
                "the tokenizer begins yes and no with the same token, so the next token cannot tell them apart"
            )
        return cls(tuple(sorted(yes - no)), tuple(sorted(no - yes)))


def _tokens(tokenizer: Any, word: str) -> set[int]:
    cases = (word, word.capitalize(), word.upper())
    writings = [
        tokenizer(space + cased, add_special_tokens=False)["input_ids"] for space in ("", " ") for cased in cases
    ]
    return {ids[0] for ids in writings if len(ids) == 1} or {ids[0] for ids in writings}
