"""Work over whole versions: derive the next one, find duplicates and leaks, check rubrics, find criteria that decide nothing.

Each job only looks, and leaves findings; `derive` is the one that makes a version, of filters or of findings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..models import CurationJob
from . import criteria, derive, duplicates, leaks, structure
from .progress import Report

Work = Callable[[CurationJob, Report], None]


@dataclass(frozen=True)
class Curation:
    """`params` checks what the caller sent and fills in defaults; it raises Invalid at `params.NAME`."""

    run: Work
    params: Callable[[dict[str, Any]], dict[str, Any]]


REGISTRY: dict[str, Curation] = {
    CurationJob.Kind.DUPLICATES: Curation(duplicates.run, duplicates.params),
    CurationJob.Kind.LEAKS: Curation(leaks.run, leaks.params),
    CurationJob.Kind.CRITERIA: Curation(criteria.run, criteria.params),
    CurationJob.Kind.STRUCTURE: Curation(structure.run, structure.params),
}
DERIVE: Work = derive.run
