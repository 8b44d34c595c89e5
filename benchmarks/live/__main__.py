"""The pages of runs beside MLflow and Trackio, measured together: `make bench-live`, or `python -m benchmarks.live [--only PART ...]`.

Starts its own Postgres, Redis, web server and worker in a temporary folder, and the servers of MLflow and Trackio, each from
PyPI in its own environment (`--alone` leaves them out). All processes, senders and viewers included, share the machine.

`ingest`: metric points stored per second, from four senders. `charts`: 20 charts of 50,000 points each, read as pages read them while new
points come. `compare`: 100 runs of 10,000 points, their last values and the curves of one metric. `painted`: from before a step is sent to
its frame in Chromium, with 100 viewers. `series`: from the click to the charts of a run of 200 x 1,000,000 points. `hours`: the memory of
the page after eight hours of steps, sent within a minute.
"""

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ingest import spent
from benchmarks.live import ours as touchstone
from benchmarks.live import pages
from benchmarks.live.sizes import SMALL, Sizes, Tracker, points_per_second
from benchmarks.machine import describe
from benchmarks.peers import PeerAway, mlflow, trackio
from tests.chromium import HOW_TO_GET_IT, LIKE_PEOPLES

PEERS: dict[str, Callable[[Path], AbstractContextManager[Tracker]]] = {
    "MLflow": mlflow.started,
    "Trackio": trackio.started,
}


@dataclass(frozen=True)
class PeerRow:
    label: str
    aim: str
    unit: str
    ours: float
    peers: dict[str, float]
    better: Callable[[Sequence[float]], float] = min  # of the peers, the one to be compared with


def main() -> None:
    options = _options()
    sizes = SMALL if options.small else Sizes()
    rows: dict[str, PeerRow] = {}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="ts-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)  # as root, Postgres runs as someone else and must reach its folder
        us = stack.enter_context(touchstone.started(folder))
        peers = {} if options.alone else _peers(stack, folder)
        for part in options.only or PARTS:
            print(f"{part}: ours", flush=True)
            took = PARTS[part](us, peers, sizes)
            for row in took.values():
                print(_line(row), flush=True)
            rows |= took
    print(describe())
    print(f"load when it began: {load:.1f}")
    print(f"{'':44}{'ours':>12}{'aim':>12}{'MLflow':>12}{'Trackio':>12}  unit")
    for row in rows.values():
        print(_line(row))
    print(json.dumps({name: _said(row) for name, row in rows.items()}))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="these parts alone")
    parser.add_argument("--alone", action="store_true", help="without MLflow and Trackio")
    parser.add_argument("--small", action="store_true", help="little of everything, to see that it works")
    return parser.parse_args()


def _peers(stack: ExitStack, folder: Path) -> dict[str, Tracker]:
    found: dict[str, Tracker] = {}
    for name, started in PEERS.items():
        home = folder / name
        home.mkdir()
        print(f"{name} is installed, if it is not, and started", flush=True)
        try:
            found[name] = stack.enter_context(started(home))
        except PeerAway as why:
            print(f"{name} is not measured: {why}", flush=True)
    return found


def _of_peers(peers: dict[str, Tracker], work: Callable[[Tracker], float]) -> dict[str, float]:
    found = {}
    for name, peer in peers.items():
        print(f"the same by {name}", flush=True)
        try:
            found[name] = work(peer)
        except PeerAway as why:
            print(f"{name} is not measured: {why}", flush=True)
    return found


def ingest(us: touchstone.Ours, peers: dict[str, Tracker], sizes: Sizes) -> dict[str, PeerRow]:
    def rate(tracker: Tracker) -> float:
        return points_per_second(tracker, sizes)

    label = f"points stored, {sizes.senders} senders"
    before = spent()
    stored = rate(us)
    _print_costs(before, sizes.senders * sizes.sent_steps * sizes.keys)
    return {"live_ingest": PeerRow(label, "200,000", "points/s", stored, _of_peers(peers, rate), max)}


def _print_costs(before: dict[str, float], points: int) -> None:
    after = spent()
    parts = [f"{part} {(after[part] - before.get(part, 0.0)) * 1e6 / points:.2f}" for part in sorted(after)]
    print(f"processor seconds of a million points: {', '.join(parts)}", flush=True)


def charts(us: touchstone.Ours, peers: dict[str, Tracker], sizes: Sizes) -> dict[str, PeerRow]:
    def read(tracker: Tracker) -> float:
        tracker.fill_charts(sizes.charts, sizes.chart_points)
        return statistics.median(tracker.charts(sizes.charts) for _ in range(sizes.rounds))

    label = f"{sizes.charts} charts of {sizes.chart_points:,} points"
    return {"live_charts": PeerRow(label, "0.3", "s", read(us), _of_peers(peers, read))}


def compare(us: touchstone.Ours, peers: dict[str, Tracker], sizes: Sizes) -> dict[str, PeerRow]:
    def read(tracker: Tracker) -> float:
        tracker.fill_runs(sizes.runs, sizes.run_points)
        return statistics.median(tracker.compare(sizes.runs) for _ in range(sizes.rounds))

    label = f"{sizes.runs} runs of {sizes.run_points:,} points compared"
    return {"live_compare": PeerRow(label, "1.5", "s", read(us), _of_peers(peers, read))}


def painted(us: touchstone.Ours, _: dict[str, Tracker], sizes: Sizes) -> dict[str, PeerRow]:
    if LIKE_PEOPLES is None:
        return _without_browser("painted")
    frames, heard = pages.painted(us, sizes)
    assert len(heard) == len(frames) * sizes.viewers, "a viewer has missed a step"  # noqa: S101
    return {
        "live_painted": PeerRow(f"sent to painted, p95, {sizes.viewers} viewers", "250", "ms", p95(frames), {}),
        "live_heard": PeerRow(f"sent to heard, p95, {sizes.viewers} viewers", "71", "ms", p95(heard), {}),
    }


def series(us: touchstone.Ours, _: dict[str, Tracker], sizes: Sizes) -> dict[str, PeerRow]:
    if LIKE_PEOPLES is None:
        return _without_browser("series")
    label = f"a run of {sizes.series} x {sizes.series_points:,}, charts drawn"
    return {"live_series": PeerRow(label, "1", "s", statistics.median(pages.long_run(us, sizes)), {})}


def hours(us: touchstone.Ours, _: dict[str, Tracker], sizes: Sizes) -> dict[str, PeerRow]:
    if LIKE_PEOPLES is None:
        return _without_browser("hours")
    held = pages.held(us, sizes)
    print("heap of the page: " + ", ".join(f"{heap:.1f} MB after {at:.1f} hours" for at, heap in held), flush=True)
    label = f"heap after {sizes.hours:g} hours, against a tenth"
    return {"live_hours": PeerRow(label, "1", "times", held[-1][1] / held[0][1], {})}


PARTS = {
    "ingest": ingest, "charts": charts, "compare": compare, "painted": painted, "series": series, "hours": hours,
}  # fmt: skip


def _without_browser(part: str) -> dict[str, PeerRow]:
    print(f"{part} is not measured here: {HOW_TO_GET_IT}", flush=True)
    return {}


def p95(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


def _line(row: PeerRow) -> str:
    told = [_number(row.ours), row.aim, *(_number(row.peers.get(peer)) for peer in PEERS)]
    return f"{row.label:44}{''.join(f'{each:>12}' for each in told)}  {row.unit}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _said(row: PeerRow) -> dict[str, float | str | None]:
    peer = row.better(list(row.peers.values())) if row.peers else None
    ratio = None if peer is None else round(row.ours / peer, 3)
    return {
        "ours": round(row.ours, 3),
        "peer": None if peer is None else round(peer, 3),
        "unit": row.unit,
        "ratio": ratio,
    }


if __name__ == "__main__":
    main()
