"""The lists of words and the patterns for the structural checks of rubrics, in English and Chinese.

The patterns have no nested repetition, so their time is linear in the length of a criterion.
"""

from dataclasses import dataclass

import regex

from trainer.verifiers.segments import words

# Verbs that begin a second check after "and". The plain ones are rarely nouns; the others ("names", "uses") count as
# verbs only if an object follows at once.
_PLAIN = (
    "is|are|has|have|does|gives?|explains?|includes?|mentions?|describes?|provides?|avoids?|suggests?|recommends?"
    "|identif(?:y|ies)|discuss(?:es)?|ensures?|advises?|tells?|keeps?|makes?|adds?|contains?|defines?|compares?"
    "|refers?|follows?|cites?|acknowledges?|clarif(?:y|ies)|encourages?|remains?|stays?|speaks?|writes?|offers?"
    "|calculates?|computes?|summari[sz]es?|begins?|ends?|demonstrates?|maintains?|addresses|considers?|presents"
    "|emphasi[sz]es?|specif(?:y|ies)|indicates?|proposes?|warns?|urges?|concludes?|returns?|omits?|corrects"
    "|does\\s+not|do\\s+not|doesn't|don't|should|must|cannot"
)
_OBJECT_NEEDED = (
    "names?|uses?|lists?|states?|claims?|notes?|shows?|links?|points?|marks?|answers?|questions?|asks?|forms?|quotes?"
    "|matches|fits|calls?|starts?|stops?|plans?|sets?|puts?|takes?|leaves?|supports?|reports?|outlines?|covers?"
)
_OBJECT = r"(?:the|an?|at|how|why|that|what|which|it|its|their|only|no|exactly|each|every|all|both|one|two|three|\d+)\b"
# "is clear and concise": two qualities of one thing. Pairs that are one notion, and names, do not count
_QUALITIES = (
    r"(?-i:\b(?:[Ii]s|[Aa]re|[Rr]emains?|[Ss]tays?|[Ss]ounds?)\s+(?:both\s+)?+"
    r"(?!(?:right|wrong|true|false|black|white|one|two|three|four|given)\b)\p{Ll}{3,}(?<!ly)\s+and\s+(?:also\s+)?+\p{Ll}{4,}"
    r"(?=\s*(?:[.,;:]|and\b|$)))"
)
COMPOUND = regex.compile(
    r"(?<!ly\s)\b(?:and|as\s+well\s+as|but(?:\s+also)?|while)\s+(?:also\s+|then\s+|it\s+|that\s+it\s+)?+(?:\p{L}+ly\s+)?+"
    rf"(?:(?:{_PLAIN})\b|(?:{_OBJECT_NEEDED})(?=\s+{_OBJECT}))"
    rf"|{_QUALITIES}|\band/or\b"
    r"|并且|而且|同时(?!间)|此外|以及(?=[说给解提避包列指])|[，,]并(?=\p{Han})"
    r"|(?<=\p{Han})(?<![合归兼吞])并(?=说明|解释|给出|提供|提出|列出|指出|包含|包括|引用|附|标明|标注|写出|举|避免)"
    r"|(?<=\p{Han})(?<![况尚暂姑苟])且(?=\p{Han})",
    regex.IGNORECASE,
)
LISTING = regex.compile(
    r"[^,，]{2,60},[^,]{2,60},?\s+and\s+\p{L}|\p{Han}{1,20}、\p{Han}{1,20}(?:、|和|与|及)\p{Han}", regex.IGNORECASE
)
# "either x, y or z", "such as ..." and "e.g." already say that any will do
ANY_WILL_DO = regex.compile(r"\b(?:or|such\s+as|e\.g|any\s+of|one\s+of|for\s+example)\b", regex.IGNORECASE)

VAGUE = regex.compile(
    r"\b(?:good|nice|great|appropriate(?:ly)?|adequate(?:ly)?|proper(?:ly)?|reasonabl[ey]|suitabl[ey]|decent(?:ly)?"
    r"|high[- ]quality|well[- ](?:written|structured|organi[sz]ed|crafted|rounded)|sufficient(?:ly)?|satisfactor(?:y|ily)"
    r"|interesting|engaging|helpful|useful|comprehensive(?:ly)?|thorough(?:ly)?|effective(?:ly)?|meaningful(?:ly)?"
    r"|insightful|compelling|nuanced|robust|elegant(?:ly)?|professional(?:ly)?(?=\s+(?:tone|manner|style|and|way|written))|naturally|fluent(?:ly)?"
    r"|as\s+(?:needed|appropriate|necessary)|if\s+possible|where\s+possible|and\s+so\s+on|etc\b\.?|somewhat"
    r"|kind\s+of|sort\s+of|more\s+or\s+less|overall|generally)(?!\p{L})"
    r"|适当|恰当|合适|合理|良好|较好|优秀|高质量|全面|充分|深入|有趣|流畅|自然(?!科学|数|界|语言|灾害)|等等|尽量|尽可能|一定程度",
    regex.IGNORECASE,
)
NEGATION = regex.compile(
    r"\b(?:not|no|never|none|without|avoid(?:s|ing)?|omit(?:s|ting)?|refrains?|lacks?|fails?|free\s+of)\b|n['’]t\b"
    r"|不|没有|无(?!论)|未|避免|缺少|切勿",
    regex.IGNORECASE,
)
# "avoids" with negative points: the fault is negated twice. "Does not mention ..." may rightly have negative points.
SHUNNING = regex.compile(
    r"^\W*(?:(?:the\s+)?response\s+)?(?:should\s+|must\s+)?(?:avoids?|refrains?|is\s+free\s+of|steers?\s+clear)\b|^避免",
    regex.IGNORECASE,
)


def _set(spaced: str) -> frozenset[str]:
    return frozenset(spaced.split())


_STOP = _set(
    "a an the of to in on at for with by from as is are be been being it its this that these those there their they "
    "response answer reply text model should must does do did has have will would can and or any some all"
)
# words that change the meaning of a sentence; two criteria that differ only in one of them are not duplicates
_TURNING = _set(
    "least most more less fewer than over under above below before after first last maximum minimum exactly both "
    "either neither only one two three four five six seven eight nine ten true false left right true start end "
    "少 多 前 后 上 下 一 二 三 四 五 六 七 八 九 十"
)
_DROPPED = _set("not no never none without avoid avoids avoiding omit omits omitting refrain refrains")
_SUFFIX = regex.compile(r"(?<=\p{L}{3})(?:ing|ies|ied|es|ed|s|e|y)$")
_HAN = regex.compile(r"\p{Han}")


@dataclass(frozen=True)
class Wording:
    """The features by which two criteria are compared: stems of the words with meaning, numbers and words that change the meaning, negation."""

    stems: frozenset[str]
    figures: frozenset[str]
    negated: bool


def wording(text: str) -> Wording:
    """Pairs of Chinese characters count as stems, because Chinese has no spaces between words."""
    found = [word.casefold() for word in words(text)]
    figures = frozenset(word for word in found if word in _TURNING or any(map(str.isnumeric, word)))
    spoken = [word for word in found if word not in _STOP and word not in _DROPPED and word not in figures]
    stems = {_SUFFIX.sub("", word) for word in spoken if not _HAN.match(word)}
    han = [word for word in spoken if _HAN.match(word) and not NEGATION.match(word)]
    stems.update(first + second for first, second in zip(han, han[1:], strict=False))
    return Wording(frozenset(stems), figures, bool(NEGATION.search(text)))
