"""`python -m trainer judge-local` and `judge-calibrate`."""

import argparse
import json
import queue
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TextIO

from trainer.contracts import jsonlines

from .calls import LocalCall, answered, read_calls

_TOGETHER = 64  # calls answered together: enough to share a conversation, few enough to lose little when killed
_WAIT_S = 0.02  # seconds to wait for a pipe's next call before the calls so far are answered
_REPORT_S = 1.0


def judge_local(arguments: list[str]) -> int:
    """Answer calls with a model on this machine. Reads and writes JSON Lines; calls that OUT already answers are skipped.

    With `-` for IN and OUT the command serves a pipe: first a line about itself, then a verdict for each call as calls come, until the
    input ends; progress then goes to stderr. Exit status 0: done; 1: no usable model; 2: the input cannot be read.
    """
    parser = argparse.ArgumentParser(prog="python -m trainer judge-local", description=judge_local.__doc__)
    parser.add_argument("--model", required=True, help="directory of a model, or its hub id")
    parser.add_argument(
        "--adapter", action="append", default=[], help="folder of an adapter laid on the model; in order"
    )
    parser.add_argument("--calibration", type=Path, help="made by judge-calibrate; else the one shipped for the model")
    parser.add_argument("--in", dest="calls", required=True, help="calls, JSON Lines, or -")
    parser.add_argument("--out", dest="verdicts", required=True, help="verdicts, JSON Lines, appended to, or -")
    options = parser.parse_args(arguments)
    from trainer.inference.models import ModelInvalid

    try:
        with TemporaryDirectory(prefix="touchstone-judge-") as folder:
            return _serve(options, Path(folder) / "merged")
    except (ModelInvalid, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"{options.calls}: {error}", file=sys.stderr)
        return 2


def judge_calibrate(arguments: list[str]) -> int:
    """Choose the threshold of yes from known verdicts: lines with conversation, response, criterion, met and item.

    Half of the items choose the threshold; the other half measure it. Writes and prints the calibration.
    """
    parser = argparse.ArgumentParser(prog="python -m trainer judge-calibrate", description=judge_calibrate.__doc__)
    parser.add_argument("--model", required=True, help="directory of a model, or its hub id")
    parser.add_argument("--verdicts", type=Path, required=True, help="known verdicts, JSON Lines")
    parser.add_argument(
        "--rule",
        choices=("accuracy", "rate"),
        default="accuracy",
        help="accuracy: the best balanced accuracy; rate: say met as often as the verdicts do, for a model that cannot judge",
    )
    parser.add_argument("--source", default="", help="where the verdicts come from, in words; else the file's name")
    parser.add_argument("--out", type=Path, required=True, help="where the calibration goes")
    parser.add_argument("--seed", type=int, default=0, help="of the halves")
    options = parser.parse_args(arguments)
    from trainer.inference.models import ModelInvalid

    try:
        rows = jsonlines.rows(options.verdicts.read_text(encoding="utf-8"))
        found = calibrated(options.model, rows, options.source or str(options.verdicts), options.seed, options.rule)
    except (ModelInvalid, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except (ValueError, KeyError) as error:
        print(f"{options.verdicts}: {error!r}", file=sys.stderr)
        return 2
    found.save(options.out)
    print(options.out.read_text(), end="")
    return 0


def calibrated(
    model: str, rows: list[dict[str, Any]], verdicts: str, seed: int = 0, rule: Literal["accuracy", "rate"] = "accuracy"
) -> Any:
    """The `ThresholdCalibration` from known verdicts. Raises ValueError for rows that cannot be read or that all have the same verdict."""
    from .answering import Answering
    from .calibration import calibrate

    names = ("conversation", "response", "criterion")
    lines = (json.dumps({"key": str(n)} | {name: row[name] for name in names}) for n, row in enumerate(rows))
    calls = list(read_calls(lines))
    answering = Answering(_directory(model))
    margins = [verdict["margin"] for verdict in answering.answer(calls)]
    items = [str(row["item"]) for row in rows]
    met = [bool(row["met"]) for row in rows]
    named = {"model": answering.name, "digest": answering.digest, "wording": calls[0].worded, "verdicts": verdicts}
    return calibrate(margins, met, items, seed=seed, rule=rule, **named)


def _serve(options: argparse.Namespace, merged: Path) -> int:
    piped = options.verdicts == "-"
    known: set[str] = set() if piped else _resume(Path(options.verdicts))
    calls, total = _input(options.calls, known)
    directory = _merged(options.model, options.adapter, merged) if options.adapter else _directory(options.model)
    from .answering import Answering  # this import loads torch; errors in the input are reported before
    from .calibration import ThresholdCalibration

    answering = Answering(directory, ThresholdCalibration.load(options.calibration) if options.calibration else None)
    tell = sys.stderr if piped else sys.stdout
    print(json.dumps(answering.described() | {"total": total, "known": len(known)}), flush=True)
    with nullcontext(sys.stdout) if piped else Path(options.verdicts).open("a") as out:
        done, started, reported = 0, time.monotonic(), 0.0
        for together in _windows(calls):
            fresh = together if piped else _unanswered(together, known)
            for verdict in answering.answer(fresh):
                out.write(json.dumps(verdict) + "\n")
            out.flush()
            done += len(fresh)
            if time.monotonic() - reported > _REPORT_S:
                reported = time.monotonic()
                _progress(tell, done, total, started)
    _progress(tell, done, total, started)
    return 0


def _directory(model: str) -> Path:
    """The model's directory. Raises ModelInvalid for a hub id that cannot be fetched, or a directory that holds no model."""
    from trainer.inference.models import check_directory, model_directory

    directory = Path(model).absolute() if Path(model).exists() else model_directory(model)
    check_directory(directory, known=True)
    return directory


def _merged(model: str, adapters: list[str], folder: Path) -> Path:
    """The model with its adapters, written to `folder` for the life of this process. Raises ModelInvalid."""
    from trainer.contracts import ModelSource
    from trainer.inference.adapters import whole_directory

    return whole_directory(ModelSource(path=str(_directory(model)), adapters=tuple(adapters)), folder)


def _progress(tell: TextIO, done: int, total: int | None, started: float) -> None:
    rate = done / max(1e-9, time.monotonic() - started)
    print(json.dumps({"answered": done, "of": total, "per_second": round(rate, 2)}), file=tell, flush=True)


def _unanswered(calls: Iterable[LocalCall], known: set[str]) -> list[LocalCall]:
    """The calls with new keys; their keys are added to `known`."""
    fresh = []
    for call in calls:
        if call.key not in known:
            known.add(call.key)
            fresh.append(call)
    return fresh


def _input(name: str, known: set[str]) -> tuple[Iterator[LocalCall], int | None]:
    """The calls and, if the input is a file, how many have no answer yet. A file is read once before the model is loaded, so that a
    bad line ends the command at once.
    """
    if name == "-":
        return read_calls(sys.stdin), None
    with Path(name).open() as lines:
        total = len({call.key for call in read_calls(lines)} - known)
    return read_calls(Path(name).open()), total


def _resume(verdicts: Path) -> set[str]:
    """The keys that are answered already. A last line that a killed process left unfinished is cut off."""
    if not verdicts.exists():
        return set()
    whole = verdicts.read_bytes()
    kept = whole[: whole.rfind(b"\n") + 1]
    if len(kept) < len(whole):
        with verdicts.open("rb+") as file:
            file.truncate(len(kept))
    try:
        return answered(jsonlines.lines(kept.decode()))
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{verdicts} holds lines that are not verdicts ({error!r}); give another file") from error


def _windows(calls: Iterable[LocalCall]) -> Iterator[list[LocalCall]]:
    """Calls that are there together, in order. A pipe's next call may depend on verdicts, so the wait for more is short."""
    arrived: queue.Queue[LocalCall | Exception | None] = queue.Queue(4 * _TOGETHER)

    def read() -> None:
        try:
            for call in calls:
                arrived.put(call)
        except ValueError as error:
            arrived.put(error)
        arrived.put(None)

    threading.Thread(target=read, daemon=True).start()
    window: list[LocalCall] = []
    while True:
        try:
            call = arrived.get(timeout=_WAIT_S if window else None)
        except queue.Empty:
            yield window
            window = []
            continue
        if isinstance(call, LocalCall):
            window.append(call)
            if len(window) == _TOGETHER:
                yield window
                window = []
            continue
        if window:
            yield window
        if call is None:
            return
        raise call
