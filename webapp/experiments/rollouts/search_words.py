"""The words of rollouts: what is stored of a text so that it is found, what somebody searches for, and whether a text has it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unicodedata import category, normalize
from zlib import crc32

from webapp.core.problems import Invalid

# scripts that put no blanks between words: Thai, Lao, Burmese, Khmer, Kana, Han
UNBROKEN = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)

_UNBROKEN = re.compile(f"[{UNBROKEN}]")
# signs that belong to the letter before them, such as vowels of Arabic and Hindi
MARKS = "".join(each for each in map(chr, range(1 << 16)) if category(each)[0] == "M" and not _UNBROKEN.match(each))
_LETTERS = rf"[^\W{UNBROKEN}]"
_PIECES = re.compile(rf"[{UNBROKEN}]+|{_LETTERS}+(?:[{MARKS}]+{_LETTERS}*)*")
_ASCII = re.compile(r"\w+", re.ASCII)  # the same of such text, in a fraction of the time
_ASKED = re.compile(r'"([^"]*)"|(\S+)')
MOST_ASKED = 32
SKIPPED = ["tokens", "logprobs", "ratios", "mask", "stretches", "spans"]
"""The keys of a rollout without a text of their own; they are most of it."""


@dataclass(frozen=True)
class WantedWords:
    """A search: `words` that must all be there, and `phrases` that must be there letter by letter."""

    words: frozenset[str]
    phrases: tuple[str, ...]

    def fits(self, texts: Iterable[str]) -> bool:
        """Whether the texts of a rollout have all of it. The index knows words by 32 bits, and phrases by their words: this tells those
        apart that share them. No more texts are read than it takes."""
        missing, absent = set(self.words), set(self.phrases)
        for text in texts:
            folded = fold(text)
            absent = {phrase for phrase in absent if phrase not in folded}
            if any(word in folded for word in missing):
                missing -= words_of(folded)
            if not missing and not absent:
                return True
        return False


def read(asked: str) -> WantedWords:
    """Words in any order; what stands between double quotes, and writing without blanks, is one phrase. Raises Invalid at `text`."""
    phrases, words = [], set()
    for quoted, single in _ASKED.findall(fold(asked)):
        piece = quoted.strip() or single
        found = words_of(piece)
        words |= found
        if found and (quoted or any(_unbroken(part) for part in _PIECES.findall(piece))):
            phrases.append(piece)
    if not words:
        raise Invalid("There is nothing to search for.", {"text": "has no word"})
    if len(words) > MOST_ASKED:
        raise Invalid("This is too much to search for at once.", {"text": f"has more than {MOST_ASKED} words"})
    return WantedWords(frozenset(words), tuple(phrases))


def stored(step: int, phase: str, texts: Iterable[str]) -> set[int]:
    """The numbers of all words of a rollout, and of its place in the run."""
    found = placed(step, phase)
    for text in texts:
        found |= words_of(fold(text))
    return numbers(found)


def placed(step: int | None, phase: str | None) -> set[str]:
    """The words of the index for the step and the phase of a rollout. No text contains these words, because they have blanks."""
    return {f"{name} {value}" for name, value in (("step", step), ("phase", phase)) if value is not None}


def numbers(words: Iterable[str]) -> set[int]:
    """32 bits of each, as Postgres counts them: from -2**31 on."""
    return {crc32(word.encode("utf-8", "replace")) - (1 << 31) for word in words}


def texts(content: Mapping[str, Any]) -> Iterator[str]:
    """The texts of a record: all but numbers, tokens and the criteria's own words, which the filter of criteria has. Turns that lie
    apart are not in it (`episodes.texts`)."""
    yield content.get("example_key") or ""
    yield content.get("prompt") or ""
    yield content.get("scaffold") or ""
    yield content.get("response") or ""
    yield content.get("excluded") or ""
    for turn in content.get("turns") or ():
        yield turn.get("tool") or ""
        yield turn["text"]
    for result in content.get("criteria") or ():
        yield result["verdict"].get("note") or ""
        yield result["verdict"].get("raw") or ""
    for part in content.get("parts") or ():
        yield part.get("why") or ""
        if shown := part.get("shown"):
            yield from _strings(shown)


def _strings(value: Any) -> Iterator[str]:
    """Every text in what a judge or a service has shown."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, Mapping):
            waiting.extend(each.values())
        elif isinstance(each, (list, tuple)):
            waiting.extend(each)


def fold(text: str) -> str:
    return text.lower() if text.isascii() else normalize("NFKC", text).casefold()


def words_of(folded: str) -> set[str]:
    """Words between blanks and signs; of writing without blanks, each character and each two neighbours."""
    found: set[str] = set()
    for part in set(folded.split()):
        if part.isascii():
            found.update((part,) if part.isalnum() else _ASCII.findall(part))
            continue
        for piece in _PIECES.findall(part):
            if _unbroken(piece):
                found.update(piece)
                found.update(map("".join, zip(piece, piece[1:], strict=False)))
            else:
                found.add(piece)
    return found


def _unbroken(piece: str) -> bool:
    return _UNBROKEN.match(piece) is not None
