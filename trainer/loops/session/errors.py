"""Ends of a run that are not its last step."""


class StopRequested(Exception):
    """Somebody asked the run to stop; the weights are those after the last completed step."""


class AttemptAbandoned(Exception):
    """The server no longer accepts this attempt: another attempt owns the run, so nothing more may be written."""


class RunFailed(RuntimeError):
    """The run cannot continue; the message says what happened and what to do."""


class ProcessLost(RunFailed):
    """A process that the run has started was lost, or hangs. The run itself is sound: it may continue from its last checkpoint."""


class Unrewarded(RunFailed):
    """No response has a reward. The weights are those after the last completed step, which is saved before the run ends."""
