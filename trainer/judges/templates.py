"""Prompt templates: each {{variable}} is replaced once, and the texts that are judged are fenced off as data."""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from trainer.contracts import Message

canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
VARIABLE = re.compile(r"\{\{\s*([a-z][a-z_]*)\s*\}\}")
# what looks like the characters of a tag and is not brought to them by Unicode's own tables: brackets, slashes, Cyrillic, Greek
_ALIKE = str.maketrans("‹〈⟨❮⁄∕⧸╱аеорсухіјѕԁһԛԝεικνορυχ", "<<<<////aeopcyxijsdhqweiknopux")
ENDING = re.compile(r"[<﹤＜‹〈⟨❮][^\w<﹤＜‹〈⟨❮]*[/／⁄∕⧸╱]")  # the beginning of the end of a tag, in any spelling
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def variables(template: str) -> list[str]:
    """The names between double braces, each once, in order of appearance."""
    return list(dict.fromkeys(VARIABLE.findall(template)))


def render(template: str, values: Mapping[str, str]) -> str:
    """The template with every known variable replaced in one pass: braces inside a value stay as they are.

    A name without a value stays as it is too; a spec with such a name is refused before it is saved.
    """
    return "".join([values.get(name, written) if name else written for written, name in _parts(template)])


@lru_cache(64)
def _parts(template: str) -> tuple[tuple[str, str], ...]:
    """The template, cut at its variables: (the text as written, the name of the variable or "")."""
    parts, at = [], 0
    for found in VARIABLE.finditer(template):
        parts += [(template[at : found.start()], ""), (found[0], found[1])]
        at = found.end()
    return (*parts, (template[at:], ""))


def scrub(text: str) -> str:
    """`text` without characters that no database stores: NUL and lone surrogates become the replacement character."""
    return _UNSTORABLE.sub("\ufffd", text)


def as_read(text: str) -> str:
    """`text` as a model may read its markup: in lower case, with plain letters for wide letters and look-alikes, without spaces and
    invisible characters.

    "< /Response >" and "</r\u0435sponse>", with a Cyrillic letter, both become "</response>".
    """
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold()).translate(_ALIKE)
    return "".join(
        [each for each in plain if each.isalnum() or each.isprintable() and unicodedata.category(each)[0] in "PS"]
    )


def fence(tag: str, text: str) -> str:
    """`text` between a pair of tags that it cannot close: if the text contains the end of the tag, in any spelling, the tag gets a number."""
    text = scrub(text)
    name, number = tag, 1
    read = as_read(text) if ENDING.search(text) else ""
    while f"</{name}" in read:
        number += 1
        name = f"{tag}-{number}"
    return f"<{name}>\n{text}\n</{name}>"


def conversation(messages: Iterable[Message]) -> str:
    """The turns of the conversation, each fenced under its role."""
    return "\n".join(fence(message.role, message.content) for message in messages)


def numbered_list(texts: Iterable[str]) -> str:
    """A numbered list, with each text on lines of its own. Answers refer to the items by these numbers."""
    return "\n".join(f"{number}. {scrub(text)}" for number, text in enumerate(texts, 1))
