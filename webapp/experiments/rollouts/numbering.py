"""The words of many texts as numbers, most of them at once: what `search_words.stored` finds, in a fraction of the time."""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from . import search_words
from .blocks import PLACE_BITS, Hits, distinct

Codes = NDArray[np.integer[Any]]  # code points, or checksums
Places = NDArray[np.intp]
ASCII, OTHER, UNBROKEN = 1, 2, 3  # kinds of letters
LONGEST = 64  # characters of a word that is counted with others
KNOWN = 1 << 15  # words in other letters, whose numbers a process keeps: most come again in the next rollouts


def hits(texts: Sequence[tuple[int, str]]) -> Hits:
    """The hits of texts, sorted, from the place of the rollout of each and the text."""
    folded = [search_words.fold(text) for _, text in texts]
    whole = "\n".join(["", *folded, ""])
    codes = np.frombuffer(whole.encode("utf-32-le", "surrogatepass"), "<u4")
    kinds = _kinds()[codes]
    parts = [*_broken(whole, codes, kinds), *_unbroken(codes, kinds)]
    at, sums = (np.concatenate(each) for each in zip(*parts, strict=True))
    ends = np.cumsum([1 + len(text) for text in folded])
    places = np.array([place for place, _ in texts], np.int64)
    numbers = sums.astype(np.int64) - (1 << 31)
    return distinct(np.left_shift(numbers, PLACE_BITS) | places[np.searchsorted(ends, at)])


def _broken(whole: str, codes: Codes, kinds: NDArray[np.uint8]) -> Iterator[tuple[Places, Codes]]:
    """The beginnings of words that have blanks or signs between them, and their checksums: those of ASCII, then the others."""
    inside = (kinds == ASCII) | (kinds == OTHER)
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    other = np.zeros(len(starts), bool)
    other[np.searchsorted(starts, np.flatnonzero(kinds == OTHER), "right") - 1] = True
    yield starts[~other], _checksums(codes, starts[~other], (ends - starts)[~other])
    slices = [whole[start:end] for start, end in zip(starts[other].tolist(), ends[other].tolist(), strict=True)]
    sums = [_known(each) if len(each) <= LONGEST else _sums(each) for each in slices]
    counts = np.fromiter(map(len, sums), np.intp, len(sums))
    yield np.repeat(starts[other], counts), np.fromiter(chain.from_iterable(sums), np.uint32)


def _sums(piece: str) -> tuple[int, ...]:
    return tuple(number + (1 << 31) for number in search_words.numbers(search_words.words_of(piece)))


_known = lru_cache(KNOWN)(_sums)


def _unbroken(codes: Codes, kinds: NDArray[np.uint8]) -> Iterator[tuple[Places, Codes]]:
    """The places of characters of writing without blanks, and their checksums; then those of each two neighbours."""
    at = np.flatnonzero(kinds == UNBROKEN)
    here = codes[at]
    one = _with_character(np.full(len(at), 0xFFFFFFFF, np.uint32), here)
    yield at, ~one
    pairs = np.flatnonzero(at[1:] == at[:-1] + 1)
    yield at[pairs], ~_with_character(one[pairs], here[pairs + 1])


def _checksums(codes: Codes, starts: Places, sizes: Places) -> Codes:
    """CRC-32 of words of ASCII, one byte of all at a time, the longest first so that those with another byte stay in front."""
    order = np.argsort(-np.minimum(sizes, LONGEST + 1).astype(np.int8), kind="stable")
    starts, sizes = starts[order], sizes[order]
    long = int(np.searchsorted(-sizes, -LONGEST))
    sums = np.full(len(starts), 0xFFFFFFFF, np.uint32)
    for byte in range(int(sizes[long:].max(initial=0))):
        count = int(np.searchsorted(-sizes, -byte))
        sums[long:count] = _with_byte(sums[long:count], codes[starts[long:count] + byte])
    sums = ~sums
    for place in range(long):
        sums[place] = crc32(codes[starts[place] : starts[place] + sizes[place]].astype(np.uint8).tobytes())
    found = np.empty_like(sums)
    found[order] = sums
    return found


def _with_character(sums: Codes, codes: Codes) -> Codes:
    """Adds the three or four bytes that UTF-8 has for a character that is UNBROKEN."""
    four = codes > 0xFFFF
    lead = np.where(four, _with_byte(sums, 0xF0 | codes >> 18), sums)
    second = np.where(four, 0x80 | codes >> 12 & 0x3F, 0xE0 | codes >> 12)
    return _with_byte(_with_byte(_with_byte(lead, second), 0x80 | codes >> 6 & 0x3F), 0x80 | codes & 0x3F)


def _with_byte(sums: Codes, byte: Codes) -> Codes:
    table: Codes = _TABLE[(sums ^ byte) & 0xFF]
    return table ^ (sums >> 8)


def _table() -> Codes:
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(values & 1, values >> 1 ^ np.uint32(0xEDB88320), values >> 1)
    return values


_TABLE = _table()


@cache
def _kinds() -> NDArray[np.uint8]:
    """The kind of each code point; 0 of those between words."""
    every, kinds = "".join(map(chr, range(0x110000))), np.zeros(0x110000, np.uint8)
    for pattern, kind in (
        (rf"\w+|[{search_words.MARKS}]+", OTHER),
        (f"[{search_words.UNBROKEN}]+", UNBROKEN),
        (r"(?a:\w+)", ASCII),
    ):
        for found in re.finditer(pattern, every):
            kinds[slice(*found.span())] = kind
    return kinds
