"""A session does everything that all recipes share: resume, the cadence of steps, evaluations and checkpoints, stop, progress, outputs."""

import time
from typing import Literal

from trainer import checkpoints, time_sharing
from trainer.checkpoints import CheckpointPlace, Folder
from trainer.contracts import AlarmData, ArtifactData, Histogram
from trainer.monitors import Records

from .clock import Clock
from .errors import AttemptAbandoned, StopRequested, Unrewarded
from .fingerprint import changes, differences, fingerprint
from .machine import Machine
from .model_outputs import write_model_output
from .saving import FOLDER, Saver
from .spans import Spans, Work
from .stage import ModelOutput, Progress, Stage, StageJob, State
from .timeline import Source

_OWNERS = ("policy", "optimizer")
"""The owners whose tensors every checkpoint holds, for all recipes."""
_OWN = ("summary", "evaluated_step", "fingerprint")
"""The session's part of a checkpoint's state; the rest is the stage's."""


class StepTell:
    """`Tell` for one step of a session."""

    def __init__(self, session: "Session", step: int) -> None:
        self._session, self._monitor, self.step = session, session.job.monitor, step
        self.spans = Spans()

    def metrics(self, values: dict[str, float], histograms: dict[str, Histogram] | None = None) -> None:
        self._monitor.metrics(self.step, values, histograms)

    def rollouts(self, records: Records) -> None:
        self._monitor.rollouts(self.step, records)

    def artifact(self, artifact: ArtifactData) -> None:
        self._monitor.artifact(artifact, self.step)

    def alarm(self, alarm: AlarmData) -> None:
        self._monitor.alarm(self.step, alarm)

    def ran(self, work: Work, name: str, start: float, end: float) -> None:
        self.spans.ran(work, name, start, end)

    def beside(self, source: Source) -> None:
        self.spans.beside(source)

    def log(self, message: str, level: Literal["info", "warning"] = "info") -> None:
        self._monitor.log(message, self.step, level)

    def watch(self, phase: str, work: Work) -> Progress:
        note = self.progress(phase, work)

        def progress(done: int, total: int) -> None:
            self.check()
            note(done, total)

        return progress

    def progress(self, phase: str, work: Work) -> Progress:
        def progress(done: int, total: int) -> None:
            self.spans.reported(work, phase, done)
            self._monitor.progress(self.step, phase, done, total, self._session.eta_s())

        return progress

    def check(self) -> None:
        if self._monitor.command == "abandon":
            raise AttemptAbandoned("the server has given this run to another attempt")
        if self._monitor.command == "stop":
            raise StopRequested

    def paused(self, reason: str) -> None:
        self._monitor.state("paused", f"Step {self.step} waits. {reason}", self.step)

    def resumed(self) -> None:
        self._monitor.state("running", step=self.step)


class Session:
    """One run of a stage. `step` is the last completed step; `summary` has the headline numbers for the run's row."""

    def __init__(self, job: StageJob, stage: Stage) -> None:
        self.job, self.stage = job, stage
        self.step = 0
        self.summary: dict[str, float] = {}
        self._config = job.config
        self._clock = Clock(job.config, stage.evaluates)
        self._evaluated_step = -1
        self._machine = Machine()
        self._fingerprint = fingerprint(job)
        self._place: CheckpointPlace = Folder(job.run_dir / FOLDER)
        self._saver = Saver(self._place, job.config.checkpoint.keep, job.monitor)

    def resume(self) -> bool:
        """Continue from the newest checkpoint; False if there is none.

        Raises CheckpointInvalid, or ValueError if the checkpoint is of another run, with the differences.
        """
        checkpoint = checkpoints.load_newest(self._place, _OWNERS)
        if checkpoint is None:
            return False
        self._recognise(checkpoint)
        self.step = checkpoint.step
        self.summary = dict(checkpoint.state["summary"])
        self._evaluated_step = checkpoint.state["evaluated_step"]
        values = {key: value for key, value in checkpoint.state.items() if key not in _OWN}
        self.stage.restore(self.step, State(values, checkpoint.tensors))
        self._saver.saved = self.step
        return True

    def run(self) -> dict[str, float]:
        """Run all remaining steps; returns the summary. Raises StopRequested and Unrewarded after saving, AttemptAbandoned without.

        Raises LeftUndone if records of responses were not written: then the run has not ended as it should.
        """
        self.stage.open(self.step)
        try:
            return self._all_steps()
        except (StopRequested, Unrewarded):
            self.save(wait=True)
            self.job.monitor.flush()  # records of a step that did not happen, or records made after a checkpoint that existed already
            raise
        finally:
            self._saver.close()
            self._machine.close()

    def _all_steps(self) -> dict[str, float]:
        # Before the first step, or after a stop in the middle of an evaluation.
        self._evaluate_if_due()
        while self.step < self._config.steps:
            self.advance()
        self._saver.settle()
        self._write_outputs()
        self.job.monitor.flush()
        return self.summary

    def advance(self) -> None:
        """The next step, with the evaluation and the checkpoint that are due after it."""
        number, started = self.step + 1, time.monotonic()
        tell = StepTell(self, number)
        self.stage.step(number, tell)
        tell.spans.over("other")
        self.step = number
        self._clock.step_took(time.monotonic() - started)
        tell.metrics({"perf/step_s": time.monotonic() - started})
        try:
            self._after_step(number, tell.spans)
        finally:  # the step itself is complete, also where a stop gives up its evaluation
            # the spans before the metrics, by which a page knows that the step is over
            self.job.monitor.spans(number, tell.spans.told())
            tell.metrics(tell.spans.metrics() | self._machine.metrics() | self.job.generated.metrics())
        time_sharing.step_over()

    def _after_step(self, number: int, spans: Spans) -> None:
        if self._evaluate_if_due(spans):
            spans.over("evaluation")
        self._saver.look()
        if number % self._config.checkpoint.every == 0 or number == self._config.steps:
            self.save(wait=number == self._config.steps)
            spans.over("saving")

    def save(self, wait: bool = False) -> None:
        """Save everything that the next step depends on. Without `wait` the checkpoint may be written during that step.

        Raises OSError, StoreAway and RunFailed. If an earlier checkpoint failed, its error is raised after this one was written.
        """
        try:
            self._saver.settle()  # before the state is asked for: the memory of the earlier checkpoint is then free
        finally:
            checkpoint = self._checkpoint()
            if not self._saver.has(checkpoint):
                self._saver.save(checkpoint, wait)

    def _checkpoint(self) -> checkpoints.Checkpoint:
        stage = self.stage.state()
        own = {"summary": dict(self.summary), "evaluated_step": self._evaluated_step, "fingerprint": self._fingerprint}
        return checkpoints.Checkpoint(self.step, stage.values | own, stage.tensors, stage.elsewhere)

    def eta_s(self) -> float | None:
        """Seconds left; None before the end of the first step."""
        alone_s = self._clock.eta_s(self.step)
        return None if alone_s is None else alone_s * time_sharing.runs_in_turn()

    def _recognise(self, checkpoint: checkpoints.Loaded) -> None:
        there = checkpoint.state.get("fingerprint")
        if there is not None:  # checkpoints of the first releases have none
            if found := differences(there, self._fingerprint, self.job.forked):
                raise ValueError(f"the checkpoint of step {checkpoint.step} is another run's: {'; '.join(found)}")
            for change in changes(there, self._fingerprint):  # only a forked run has changes
                self.job.monitor.log(f"changed since the checkpoint: {change}", checkpoint.step)
            if there["code"] != self._fingerprint["code"]:
                self.job.monitor.log(
                    "the program has changed since this run was last saved; its next steps may differ from those of the "
                    "earlier program",
                    checkpoint.step,
                    "warning",
                )
        if checkpoint.step > self._config.steps:
            raise ValueError(f"the checkpoint is after step {checkpoint.step}, the config ends at {self._config.steps}")

    def _evaluate_if_due(self, step_spans: Spans | None = None) -> bool:
        every, step = self._config.evaluation.every, self.step
        due = step in (0, self._config.steps) or (every > 0 and step % every == 0)
        due = due and step > self._evaluated_step and self.stage.evaluates
        if due:
            started = time.monotonic()
            tell = StepTell(self, step)
            values = self.stage.evaluate(step, tell)
            self._clock.evaluation_took(time.monotonic() - started)
            if step_spans:
                step_spans.evaluated(tell.spans)
            tell.metrics(values)
            self._summarise(values)
            self._evaluated_step = step
        return due

    def _summarise(self, values: dict[str, float]) -> None:
        key = self.job.recipe.headline
        if key in values:
            self.summary.setdefault(f"{key}_start", values[key])
            self.summary[key] = values[key]

    def _write_outputs(self) -> None:
        """Write the trained models, each under `outputs/`. A resumed run writes the same again."""
        for output in self.stage.outputs():
            self.job.monitor.progress(self.step, "exporting", 0, 1, None)
            artifact = self.job.monitor.patiently(lambda output=output: self._written(output), self.step)  # type: ignore[misc]
            self.job.monitor.artifact(artifact, self.step)

    def _written(self, output: ModelOutput) -> ArtifactData:
        return write_model_output(self.job, output, self.step, self.summary, output.name)
