"""Rules for passwords: no common word with ornaments, no known fact about the person or the product, no simple sequence.

The list of 20,000 common passwords is Django's. Names of validators: `settings.AUTH_PASSWORD_VALIDATORS`.
"""

import re
from collections.abc import Iterator
from functools import cache

from django.contrib.auth.password_validation import CommonPasswordValidator
from django.core.exceptions import ValidationError

from ..models import User

LEAST_DIFFERENT = 5  # characters
LEAST_LETTERS = 4  # beside known words and sequences
SHORTEST_KNOWN = 3
ROWS = ("abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "yxcvbnm")
OF_US = ("touchstone", "password", "passphrase", "annotator")
AS_LETTERS = str.maketrans("@4831!05$7", "aabeiiosst")


class NotGuessable:
    """A validator for `AUTH_PASSWORD_VALIDATORS`; raises ValidationError with the reason."""

    def validate(self, password: str, user: User | None = None) -> None:
        if len(set(password.lower())) < LEAST_DIFFERENT:
            raise ValidationError(f"It has fewer than {LEAST_DIFFERENT} different characters.", "few_characters")
        core = re.sub(r"^[\W\d_]+|[\W\d_]+$", "", password.lower())
        if {core, core.translate(AS_LETTERS)} & _common():
            raise ValidationError("It is a common password with a few more characters.", "common_word")
        if found := self._known(password, user):
            raise ValidationError(f"Without {found}, it is too short.", "known_words")

    def get_help_text(self) -> str:
        return "Do not use a common word with a few more characters, anything about you or this program, or a row of the keyboard."

    def _known(self, password: str, user: User | None) -> str:
        """The known or guessable text that makes up nearly all of the password; empty if there is none."""
        for text in (password.lower(), password.lower().translate(AS_LETTERS)):
            found, rest = [], text
            for word in sorted({*_of(user), *OF_US, *_rows()}, key=len, reverse=True):
                if word in rest:
                    found.append(word)
                    rest = rest.replace(word, " ")
            if found and sum(each.isalpha() for each in rest) < LEAST_LETTERS:
                return " and ".join(f"“{word}”" for word in found)
        return ""


def _of(user: User | None) -> Iterator[str]:
    for part in re.split(r"[\W_]+", f"{user.name} {user.email}".lower()) if user else ():
        if len(part) >= SHORTEST_KNOWN:
            yield part


@cache
def _common() -> frozenset[str]:
    return frozenset(CommonPasswordValidator().passwords)


@cache
def _rows() -> frozenset[str]:
    """Every sequence of four or more characters from neighbouring keys or letters, in either direction."""
    both = (*ROWS, *(row[::-1] for row in ROWS))
    return frozenset(row[at:end] for row in both for at in range(len(row)) for end in range(at + 4, len(row) + 1))
