"""The contour of a sweep as a picture: bands of equal steps of the metric, and a dot at each place that was tried."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import keys
from .contour import Contour, ContourPlace, ContourSide

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 84, 20, 16, 48
BANDS = 6
BEST = 3  # places that carry their rank
MOST_NAMED = 5  # values of a list that are written at its axis


@dataclass(frozen=True)
class ContourBand:
    """`number` from 0, the lowest values; `path`: its cells."""

    number: int
    low: float
    high: float
    path: str


@dataclass(frozen=True)
class ContourDot:
    x: float
    y: float
    title: str
    rank: int  # from 1, the best

    @property
    def stands_out(self) -> bool:
        return self.rank <= BEST


@dataclass(frozen=True)
class ContourPicture:
    """`across` and `up`: (place, words) of the ticks. `bands` from the highest values down; `rows` as the table lists them."""

    contour: Contour
    bands: list[ContourBand]
    dots: list[ContourDot]
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2

    @property
    def center(self) -> float:
        return (self.top + self.bottom) / 2

    @property
    def below(self) -> int:
        """The height of the words below the lower axis."""
        return self.bottom + 18

    @property
    def rows(self) -> list[tuple[str, str, ContourPlace]]:
        return [(_worded(each.x), _worded(each.y), each) for each in self.contour.places]


def drawn(contour: Contour, higher: bool) -> ContourPicture:
    """`higher`: whether higher values of the metric are better."""
    ranked = sorted(contour.places, key=lambda each: -each.value if higher else each.value)
    dots = [_dot(contour, place, rank) for rank, place in enumerate(ranked, 1)]
    across = [(_x(contour.x.share(value)), _worded(value)) for value in _ticks(contour.x)]
    up = [(_y(contour.y.share(value)), _worded(value)) for value in _ticks(contour.y)]
    return ContourPicture(contour, _bands(contour), dots[::-1], across, up)


def _worded(number: float) -> str:
    return keys.value_text(float(f"{number:.3g}"))


def _ticks(side: ContourSide) -> Sequence[float]:
    if 0 < len(side.named) <= MOST_NAMED:
        return side.named
    return [side.at(share) for share in (0.0, 0.5, 1.0)]


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _dot(contour: Contour, place: ContourPlace, rank: int) -> ContourDot:
    trials = "trial" if len(place.trials) == 1 else f"mean of {len(place.trials)} trials:"
    numbers = ", ".join(map(str, place.trials))
    where = f"{contour.x.path} {_worded(place.x)}, {contour.y.path} {_worded(place.y)}"
    words = f"{place.value:.3g} at {where} ({trials} {numbers})"
    return ContourDot(_x(contour.x.share(place.x)), _y(contour.y.share(place.y)), words, rank)


def _bands(contour: Contour) -> list[ContourBand]:
    known = [value for row in contour.surface for value in row if value is not None]
    if not known:
        return []
    low, high = min(known), max(known)
    count = BANDS if high > low else 1
    paths: list[list[str]] = [[] for _ in range(count)]
    for band, piece in _stretches(contour, low, high, count):
        paths[band].append(piece)
    step = (high - low) / count
    found = [ContourBand(at, low + at * step, low + (at + 1) * step, "".join(path)) for at, path in enumerate(paths)]
    return [each for each in found[::-1] if each.path]


def _stretches(contour: Contour, low: float, high: float, count: int) -> Iterator[tuple[int, str]]:
    """Neighbours of a row that are in one band, as one rectangle."""
    rows = contour.surface
    for row, values in enumerate(rows):
        bands = [None if value is None else _band(value, low, high, count) for value in values]
        begins = 0
        for at in range(1, len(bands) + 1):
            if at < len(bands) and bands[at] == bands[begins]:
                continue
            band = bands[begins]
            if band is not None:
                left, right = _x(begins / len(bands)), _x(at / len(bands))
                top, bottom = _y((row + 1) / len(rows)), _y(row / len(rows))
                yield band, f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}Z"
            begins = at


def _band(value: float, low: float, high: float, count: int) -> int:
    return min(int((value - low) / (high - low) * count), count - 1) if high > low else 0
