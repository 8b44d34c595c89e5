"""The same requests in several languages: blocks of code that follow one another become a group, of which the page shows one at a time."""

from collections.abc import Sequence
from itertools import groupby

from markdown_it.token import Token

CURL, PYTHON, COMMAND = "curl", "Python", "Command"
_CODE = ("fence", "code_block")


def grouped(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with a `div` around each group and each of its languages. The requests with curl come first, those from Python are marked as
    such, and all that follows belongs to the command, also the files that it reads."""
    found: list[Token] = []
    for code, same in groupby(tokens, lambda token: token.type in _CODE):
        run = list(same)
        found += _group(run) if code else run
    return found


def _group(run: list[Token]) -> list[Token]:
    place = next((i for i, token in enumerate(run) if token.info.strip() == "python"), None)
    if place is None or not run[-1].content.startswith("touchstone ") or run[-1].type != "code_block":
        return run
    parts = ((CURL, run[:place]), (PYTHON, run[place : place + 1]), (COMMAND, run[place + 1 :]))
    inside = [_part(name, tokens) for name, tokens in parts if tokens]
    return [_html('<div class="languages">'), *(token for part in inside for token in part), _html("</div>")]


def _part(name: str, tokens: list[Token]) -> list[Token]:
    head = _html(f'<div class="language"><div class="language-name">{name}</div>')
    return [head, *tokens, _html("</div>")]


def _html(text: str) -> Token:
    return Token("html_block", "", 0, content=text)
