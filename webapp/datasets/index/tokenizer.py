"""Words for full-text search in any script, made in one place for rows and for queries.

A database would cut text by the server's locale, and write Chinese and Japanese runs as one word. Here such runs become
overlapping pairs of characters, so that any part of a run is found; other words are folded to lower case without accents.
"""

import re
import unicodedata

from trainer.contracts import Example

MAX_CHARACTERS = 20_000  # of an example's text that are searched: first the prompt, then criteria, then responses
MAX_WORD = 64
MAX_QUERY_WORDS = 12
# the new value of each byte: letters become lower case, all other ASCII becomes a space
FOLDED = bytes(ord(chr(i).lower()) if chr(i).isalnum() else 32 for i in range(128)) + bytes(range(128, 256))
SINGLE = re.compile(rf"[a-z0-9]{{1,{MAX_WORD}}}")
WORDS = re.compile(r"[^\W_]+")
# Han with its extensions, hiragana, katakana: written without spaces
UNSPACED = re.compile(r"[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]+")


def indexed_text(example: Example) -> str:
    """The text whose words find the example. The index of keys also finds a key that is a word (`postings`)."""
    criteria = example.rubric.criteria if example.rubric else ()
    return "\n".join(
        (
            *(() if is_word(example.key) else (example.key,)),
            *[message.content for message in example.prompt],
            *[criterion.text for criterion in criteria],
            *[response.text for response in example.responses],
        )
    )


def searched(text: str) -> str:
    """The part of the text that is searched. After `FOLDED` is applied to its bytes, the words are between spaces, in no order, and some
    are repeated. ASCII is returned unchanged, because a caller with many texts folds them all at once."""
    text = text[:MAX_CHARACTERS]
    return text if text.isascii() else " ".join(_words(text))


def is_word(text: str) -> bool:
    """Whether the text is one word exactly as it is written, and no longer than a word that is kept whole."""
    return SINGLE.fullmatch(text) is not None


def cut(word: bytes) -> bytes:
    """The part of the word that is kept."""
    return word if len(word) <= MAX_WORD else word.decode()[:MAX_WORD].encode()


def terms(text: str) -> list[tuple[str, bool]]:
    """The words of a search: each word that must be there, and whether it may continue. Empty: nothing to find."""
    found: list[tuple[str, bool]] = []
    for word in _cut(text[:1000]):
        if len(word) > 1 and _is_unspaced(word):
            found += [(word[i : i + 2], False) for i in range(len(word) - 1)]
        else:
            found.append((word[:MAX_WORD], True))
    return list(dict.fromkeys(found[:MAX_QUERY_WORDS]))


def tokens(text: str) -> list[str]:
    """The folded words in their order, pairs of characters if a script has no spaces: for comparing texts."""
    found: list[str] = []
    for word in _cut(text[:MAX_CHARACTERS]):
        found += [word[i : i + 2] for i in range(len(word) - 1)] or [word] if _is_unspaced(word) else [word]
    return found


def _words(text: str) -> set[str]:
    found = set(_cut(text))
    runs = [word for word in found if _is_unspaced(word)]
    found.difference_update(runs)
    for run in runs:
        found.update(run[i : i + 2] for i in range(len(run)))  # the last character alone, so that its prefix is found
    return found


def _cut(text: str) -> list[str]:
    """The folded words. Runs of scripts without spaces are separated from the letters around them."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    for accent in filter(_is_accent, set(folded)):  # a text has few different letters
        folded = folded.replace(accent, "")
    folded = UNSPACED.sub(lambda run: f" {run[0]} ", unicodedata.normalize("NFC", folded))
    return WORDS.findall(folded)


def _is_unspaced(word: str) -> bool:
    return word >= "\u3005" and UNSPACED.fullmatch(word) is not None


def _is_accent(letter: str) -> bool:
    # kana's voicing marks change the sound, so they stay and are composed again
    return letter > "\u02ff" and unicodedata.category(letter) == "Mn" and letter not in "\u3099\u309a"
