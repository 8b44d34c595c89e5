"""The language of a text: by its script if that decides, else by langid's byte n-grams (Lui 2012)."""

from functools import lru_cache
from typing import Any, Literal

import regex
from pydantic import Field

from .base import Args, Finding, Verifier, VerifierExample

Code = Literal[
    "ar", "bg", "ca", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr", "hu", "id", "it",
    "ja", "ko", "lt", "lv", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sv", "th", "tr", "uk", "vi", "zh",
]  # fmt: skip
SHORT_LETTERS = 20
_SCRIPTS = {
    "ja": regex.compile(r"[\p{Hiragana}\p{Katakana}]"),
    "zh": regex.compile(r"\p{Han}"),
    "ko": regex.compile(r"\p{Hangul}"),
    "th": regex.compile(r"\p{Thai}"),
    "el": regex.compile(r"\p{Greek}"),
    "he": regex.compile(r"\p{Hebrew}"),
}
_LETTER = regex.compile(r"\p{L}")


class Language(Args):
    code: Code = Field(description="ISO 639-1 code")


@lru_cache(maxsize=1)
def _identifier() -> Any:
    # Loading takes about two seconds and numpy, so it happens only if a rubric asks for a language.
    from langid.langid import LanguageIdentifier, model

    return LanguageIdentifier.from_modelstring(model, norm_probs=True)


def detect(text: str) -> str | None:
    """ISO code of the most likely language, None for a text without letters.

    If one language alone uses a script, the script decides when most letters belong to it. Japanese needs at least half as many kana
    as Han characters; a Japanese text of Han characters alone reads as Chinese.
    """
    letters = len(_LETTER.findall(text))
    if not letters:
        return None
    share = {code: len(pattern.findall(text)) / letters for code, pattern in _SCRIPTS.items()}
    if share["ja"] >= 0.1 and share["ja"] + share["zh"] > 0.5:
        return "ja"
    for code, part in share.items():
        if part > 0.5:
            return code
    plain = text.encode("utf-8", "replace").decode("utf-8")
    return str(_identifier().classify(plain)[0])


def _language(text: str, args: Language) -> Finding:
    found = detect(text)
    if found is None:
        return Finding(False, "no letters")
    short = len(_LETTER.findall(text)) < SHORT_LETTERS
    return Finding(found == args.code, f"reads as {found}" + (" (a guess: the text is very short)" if short else ""))


VERIFIERS = (
    Verifier(
        "language",
        "Language",
        f"The language the text reads as. Below {SHORT_LETTERS} letters this is a guess; close languages are confused.",
        Language,
        _language,
        (
            VerifierExample("Bonjour, je voudrais une table pour deux personnes.", {"code": "fr"}, True),
            VerifierExample("Good evening, a table for two people please.", {"code": "fr"}, False),
            VerifierExample("今日はとても暑いです。", {"code": "ja"}, True),
        ),
    ),
)
