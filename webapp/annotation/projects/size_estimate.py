"""An estimate of the number of tasks before a project is made: counted in a small version, else scaled from a sample."""

from dataclasses import dataclass

from webapp.datasets.models import DatasetVersion, VersionMember

from ..tasks import task_factory

SAMPLED = 400  # examples in the sample; reading and parsing them takes some 30 ms


@dataclass(frozen=True)
class Size:
    """`answers` counts the answers of all seats together; `exact` is False if the numbers come from a sample."""

    tasks: int
    answers: int
    examples: int
    exact: bool


def estimate_size(version: DatasetVersion, kind: str, overlap: int) -> Size:
    """The sample is taken at regular intervals, so that a version sorted by kind of content does not mislead."""
    examples = int(version.counts.get("examples", 0))
    step = max(1, -(-examples // SAMPLED))
    sample = VersionMember.objects.filter(version=version, position__in=range(0, examples, step))
    found = [len(task_factory.subjects_of(kind, member.example.content)) for member in sample.select_related("example")]
    exact = step == 1
    tasks = sum(found) if exact else round(sum(found) / max(len(found), 1) * examples)
    return Size(tasks, tasks * max(overlap, 1), examples, exact)
