"""Metrics that every recipe emits, and the groups of all metrics on a page."""

from dataclasses import dataclass

from ..recipe import Metric, with_ends


@dataclass(frozen=True)
class ChartGroup:
    """Charts under one heading of a run's page. `small`: many charts of one kind, drawn smaller."""

    id: str
    title: str
    lede: str = ""
    small: bool = False


GROUPS = (
    ChartGroup("outcome", "Outcome"),
    ChartGroup("closing", "After the last step", "Answers of the trained policy to the held-out prompts.", small=True),
    ChartGroup("reward", "Reward"),
    ChartGroup("judge", "Judge", "Verdicts of judges during the run, and their cost."),
    ChartGroup("train", "Training"),
    ChartGroup("policy", "Policy"),
    ChartGroup("ratios", "Ratios"),
    ChartGroup("rollout", "Rollout"),
    ChartGroup("data", "Data"),
    ChartGroup(
        "criteria", "Criteria", "Share of responses that meet the criteria checked by each verifier.", small=True
    ),
    ChartGroup("optim", "Optimiser"),
    ChartGroup("async", "Workers", "How sampling and training keep pace with each other in an asynchronous run."),
    ChartGroup("speed", "Speed"),
)
"""The groups in the order of the page."""

_WORK = (
    "The time of a step by kinds of work, with the evaluation and the checkpoint after it. Sampling, waiting for rewards, and training (all that "
    "measures or updates weights) follow each other, unless workers sample beside the learner: there, sampling is how long the learner waited for them."
)
_CORES = (
    "Run: processors that the run's process kept busy. If it is near 1 on a machine with more, one thread is what the run waits for. Workers of a "
    "cluster are other processes."
)
_GPUS = (
    "GPUs: the share of the time in which they computed, and of their memory that is used, as the driver tells it every second: of the GPUs of the "
    "run's process, or of all of its machine if its workers have them. Low while the run samples or trains: the GPU waits for something else."
)
_DISKS = "The bytes that all processes of the run's machine read from its disks and wrote to them."
_NETWORK = (
    "The bytes that all processes of the run's machine received and sent. Traffic within the machine does not count."
)
SPANS = (
    Metric("perf/rollout_s", "sampling", _WORK, "speed", chart="Time by work", unit="s", optional=True),
    Metric("perf/reward_s", "rewards", "", "speed", chart="Time by work", unit="s", optional=True),
    Metric("perf/learner_s", "training", "", "speed", chart="Time by work", unit="s", optional=True),
    Metric("perf/evaluation_s", "evaluation", "", "speed", chart="Time by work", unit="s", optional=True),
    Metric("perf/saving_s", "checkpoint", "", "speed", chart="Time by work", unit="s", optional=True),
    Metric("perf/other_s", "other", "", "speed", chart="Time by work", unit="s", optional=True),
)
"""Work of a step (`trainer.loops.session.spans`), in the order of the page."""

MACHINE = (
    Metric("perf/cores", "run", _CORES, "speed", chart="Processors busy", unit="processors", optional=True),
    Metric(
        "perf/machine_cores",
        "all of the machine",
        "All: the processors that the machine has.",
        "speed",
        chart="Processors busy",
        unit="processors",
        optional=True,
    ),
    Metric(
        "perf/memory_gib", "run", "Memory of the run's process.", "speed", chart="Memory", unit="GiB", optional=True
    ),
    Metric("perf/gpu_memory_gib", "GPU, most so far", "", "speed", chart="Memory", unit="GiB", optional=True),
    Metric(
        "perf/machine_busy",
        "processors",
        "The whole machine on which the run's process is: the share of its processors that was busy, and of its memory that is used.",
        "speed",
        chart="Machine in use",
        share=True,
        optional=True,
    ),
    Metric("perf/machine_memory", "memory", "", "speed", chart="Machine in use", share=True, optional=True),
    Metric("perf/gpu_busy", "GPUs", _GPUS, "speed", chart="Machine in use", share=True, optional=True),
    Metric("perf/gpu_memory", "memory of GPUs", "", "speed", chart="Machine in use", share=True, optional=True),
    Metric("perf/disk_read", "read", _DISKS, "speed", chart="Disks", unit="MiB/s", optional=True),
    Metric("perf/disk_written", "written", "", "speed", chart="Disks", unit="MiB/s", optional=True),
    Metric("perf/network_received", "received", _NETWORK, "speed", chart="Network", unit="MiB/s", optional=True),
    Metric("perf/network_sent", "sent", "", "speed", chart="Network", unit="MiB/s", optional=True),
)

GENERATED = Metric(
    "perf/generated_tokens",
    "Tokens generated",
    "All tokens that were sampled from the end of the step before until the end of this one: responses that the step learns from or leaves out, "
    "answers to held-out prompts, judgements by the run's own model. The token limit of a run counts their sum over the steps.",
    "speed",
    unit="tokens",
    optional=True,
)
"""Recipes that sample have this metric (`trainer.loops.session.generated_tokens`)."""

COMMON = (
    Metric("optim/lr", "Learning rate", "As scheduled.", "optim"),
    Metric(
        "perf/step_s",
        "Time per step",
        "All of a step together: reading or sampling, scoring and updating.",
        "speed",
        unit="s",
        better="lower",
    ),
    *SPANS,
    *MACHINE,
)


def share_of_pairs(key: str, title: str, help: str) -> tuple[Metric, ...]:
    """A share of the held-out pairs that tells how good the result is, with its 95% interval."""
    found = Metric(key, title, help, "outcome", better="higher", count="eval/pairs", share=True, optional=True)
    return with_ends(found, "95%.")
