"""Work over whole versions: derive the next one, find duplicates and leaks, check rubrics, find criteria that decide nothing,
select what is worth training on.

Each job only searches, and stores findings. Only `derive` makes a version, by filters or by findings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..models import CurationJob
from . import criteria, derive, duplicates, faulty, leaks, meaning, selection, structure
from .progress import CurationReport

Work = Callable[[CurationJob, CurationReport], None]


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
    CurationJob.Kind.SHORTEST: Curation(selection.shortest, selection.shortest_params),
    CurationJob.Kind.BALANCE: Curation(selection.balance, selection.balance_params),
    CurationJob.Kind.HARDEST: Curation(selection.hardest, selection.hardest_params),
    CurationJob.Kind.COVER: Curation(selection.cover, selection.cover_params),
    CurationJob.Kind.MEANING: Curation(meaning.run, meaning.params),
    CurationJob.Kind.FAULTY: Curation(faulty.run, faulty.params),
}
DERIVE: Work = derive.run
