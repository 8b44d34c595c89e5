"""A number with the noun that it counts, as people say it: 1 pair, 2 pairs; 1 criterion, 1,200 criteria."""

_IRREGULAR = {"people": "person", "ties": "tie"}
_ENDINGS = (("ria", "rion"), ("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("s", ""))


def with_noun(count: int, plural: str) -> str:
    """The first plural in `plural` follows the number: 1 and "pairs with a preferred answer" give "1 pair with a preferred answer"."""
    return f"{count:,} {noun(count, plural)}"


def noun(count: int, plural: str) -> str:
    """The words without the number, for places that show the number in another way."""
    if count != 1:
        return plural
    words = plural.split(" ")
    at = next((i for i, word in enumerate(words) if _singular(word) != word), 0)
    return " ".join([*words[:at], _singular(words[at]), *words[at + 1 :]])


def _singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    for many, one in _ENDINGS:
        if word.endswith(many):
            return word.removesuffix(many) + one
    return word
