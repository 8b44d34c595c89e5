"""One search over the texts of many examples at once: most have no markup, no word of tone and no wording of a constraint, and need no
separate search then.

Arrow gives every text to an automaton that knows all words together; one by one in Python, they took a seventh of an import's time.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from .derive import BOOSTERS, CONSTRAINTS, HEDGES, MARKUP, Signs

# in the order of Signs; case is ignored, since tone and constraints are looked for in small letters
PATTERNS = (MARKUP.pattern, "|".join((*BOOSTERS, *HEDGES)), "|".join(CONSTRAINTS))


def signs_of(texts: pa.StringArray) -> Iterator[Signs]:
    """The signs of each example. Its text is that of `tokenizer.indexed_text`: all its texts, a new line before each part."""
    found = (pc.match_substring_regex(texts, pattern, ignore_case=True) for pattern in PATTERNS)
    return map(Signs._make, zip(*(one.to_pylist() for one in found), strict=True))
