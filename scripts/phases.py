"""Runs parts of the tests at the same time, and prints the output of each in one piece.

    python -m scripts.phases [--again] test-stack,test-browser test-trainer,test-web

Each argument is a lane: targets of the Makefile, one after another. Lanes run at the same time, and all others yield to the first:
tests of real services and of pages wait much of the time, and must have time when they work. A part that fails does not stop the others.

With `--again` (CI), failed tests run once more by themselves when everything else has ended, unless there are more than a few. Tests of a
file that could not be set up count as one, because a fixture of theirs failed. A test that passes then is listed as flaky and does not
decide; its first output stays above.

Exit status 1 if a part failed, 130 after Ctrl-C.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
A_FEW = 5
TELL_EVERY_S = 60.0
# A third of a processor's time if both want it, and never almost none, because its tests have limits of the product
YIELDING = ("nice", "-n", "5")


@dataclass
class MakePhase:
    """One target of the Makefile: its process, its output, and which of its tests failed."""

    target: str
    yields: bool
    folder: Path
    process: "subprocess.Popen[bytes] | None" = None
    began: float = 0.0
    seconds: float = 0.0
    processor_s: float = 0.0
    """Processor seconds of the part and of all processes that it started and waited for. They show the cost of a part even on a busy
    machine."""
    code: int = -1  # until it has ended
    flaky: list[str] = field(default_factory=list)

    @property
    def output(self) -> Path:
        return self.folder / f"{self.target}.log"

    @property
    def cache(self) -> Path:
        """A cache folder for each part, because pytest stores failures in one file, which parts that run at the same time would
        overwrite."""
        return ROOT / ".pytest_cache" / self.target

    @property
    def runs(self) -> bool:
        """Whether it runs. This does not use `poll`, because the thread that waits for the process would then miss its end."""
        return self.process is not None and self.process.returncode is None

    def run(self, *options: str) -> None:
        """Runs the part until it has ended."""
        command = [*(YIELDING if self.yields else ()), "make", "--no-print-directory", self.target]
        added = [os.environ.get("PYTEST_ADDOPTS", ""), f"-o cache_dir={self.cache}", *options]
        self.began = time.monotonic()
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | {"PYTEST_ADDOPTS": " ".join(added)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                # so that all of it can be interrupted; not a session, because kernels that group by session would ignore `nice`
                process_group=0,
            )
            _, status, used = os.wait4(self.process.pid, 0)
            self.code = self.process.returncode = os.waitstatus_to_exitcode(status)
        self.processor_s += used.ru_utime + used.ru_stime
        self.seconds += time.monotonic() - self.began

    def forget(self) -> None:
        (self.cache / "v" / "cache" / "lastfailed").unlink(missing_ok=True)

    def failed_tests(self) -> list[str]:
        """The failed tests from pytest's cache; empty if the part failed for another reason."""
        path = self.cache / "v" / "cache" / "lastfailed"
        return sorted(json.loads(path.read_text())) if path.exists() else []

    def ended_with(self, failed: list[str]) -> bool:
        """Whether pytest came to its end and names no other failed tests than these. Otherwise, or if it could not collect all tests, some
        are missing, and running only the known failures would hide this. If the tidying up of a test fails too, the test is named twice."""
        text = self.text
        ended = re.search(r"^(?:=+ )?\d+ [a-z].* in [\d.]+s\b", text, re.MULTILINE)
        if not ended or "INTERNALERROR" in text or "Interrupted" in text or any("::" not in name for name in failed):
            return False
        return self._named("FAILED|ERROR", failed) == set(failed)

    def causes(self, failed: list[str]) -> int:
        """The number of failed tests, in which those of a file that could not be set up, or tidied up, count as one."""
        errors = self._named("ERROR", failed) - self._named("FAILED", failed)
        return len(set(failed) - errors) + len({name.partition("::")[0] for name in errors})

    def _named(self, result: str, failed: list[str]) -> set[str]:
        """The tests that the output names with this result: those of `failed`, and others as the output has them. Lines of a test's own log
        have more spaces."""
        lines = re.findall(rf"^(?:{result}) (\S.*)", self.text, re.MULTILINE)
        return {next((each for each in failed if f"{line} - ".startswith(f"{each} - ")), line) for line in lines}

    @property
    def text(self) -> str:
        """The output of the part so far."""
        return self.output.read_text(errors="replace")

    def so_far(self) -> str:
        """The last line of its output."""
        lines = self.output.read_text(errors="replace").split("\n") if self.output.exists() else []
        return next((line for line in reversed(lines) if line.strip()), "").strip()[-100:]


class Lanes:
    """The lanes, and the printing of parts that have ended."""

    def __init__(self, lanes: list[list[MakePhase]]) -> None:
        self.lanes = lanes
        self.threads = [threading.Thread(target=self._run_lane, args=[lane], daemon=True) for lane in lanes]
        self.printing = threading.Lock()
        self.stopped = False

    @property
    def phases(self) -> list[MakePhase]:
        return [phase for lane in self.lanes for phase in lane]

    def run(self) -> None:
        for thread in self.threads:
            thread.start()
        told = time.monotonic()
        while any(thread.is_alive() for thread in self.threads):
            time.sleep(0.2)
            if time.monotonic() - told >= TELL_EVERY_S:
                told = time.monotonic()
                self._tell()

    def _run_lane(self, lane: list[MakePhase]) -> None:
        for phase in lane:
            if self.stopped:
                return
            self.say(f"== {phase.target} begins")
            phase.forget()
            phase.run()
            self.show(phase)

    def show(self, phase: MakePhase) -> None:
        result = f"failed ({phase.code})" if phase.code else "passed"
        self.say(f"== {phase.target}: the output\n{phase.text}== {phase.target} {result} after {clock(phase.seconds)}")

    def say(self, text: str) -> None:
        with self.printing:
            print(text, flush=True)

    def _tell(self) -> None:
        for phase in self.phases:
            if phase.runs:
                self.say(f"   {phase.target} {clock(time.monotonic() - phase.began)}: {phase.so_far()}")

    def stop(self) -> None:
        """Interrupts the running parts, as Ctrl-C would, and waits until they have tidied up."""
        self.stopped = True
        for phase in self.phases:
            if phase.process and phase.runs:
                with suppress(ProcessLookupError):  # it has just ended
                    os.killpg(phase.process.pid, signal.SIGINT)
        for thread in self.threads:
            thread.join()

    def again(self) -> None:
        """Runs the failed tests once more, one part after the other, while nothing else runs."""
        for phase in self.phases:
            failed = phase.failed_tests() if phase.code else []
            if 0 < phase.causes(failed) <= A_FEW and phase.ended_with(failed):
                self.say(f"== {phase.target} once more: {', '.join(failed)}")
                phase.run("--last-failed", "--last-failed-no-failures=none")
                phase.flaky = [] if phase.code else failed
                self.show(phase)


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def summary(phases: list[MakePhase]) -> str:
    lines = ["== all parts: time, and processor time"]
    for phase in phases:
        result = "failed" if phase.code else "passed"
        lines.append(f"{phase.target:<14}{result:<8}{clock(phase.seconds):>6}{clock(phase.processor_s):>8}")
    lines += [f"FLAKY: {name} failed, and passed by itself" for phase in phases for name in phase.flaky]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.phases", description=__doc__)
    parser.add_argument(
        "--again", action="store_true", help="run failed tests once more by themselves, if they are few"
    )
    parser.add_argument("lanes", nargs="+", metavar="TARGET[,TARGET...]")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="ts-phases-") as folder:
        named = [lane.split(",") for lane in asked.lanes]
        lanes = Lanes([[MakePhase(name, n > 0, Path(folder)) for name in lane] for n, lane in enumerate(named)])
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            lanes.run()
            if asked.again:
                lanes.again()
        except KeyboardInterrupt:
            lanes.stop()
            return 130
        print(summary(lanes.phases), flush=True)
        return int(any(phase.code for phase in lanes.phases))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
