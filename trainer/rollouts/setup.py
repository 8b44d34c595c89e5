"""Makes the rewards of a run, in its own process or in separate workers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from trainer.config import OnPolicyConfig
from trainer.config.rewards.base import PRECISION_AT, MatchedPart
from trainer.config.rewards.parts import RewardModelPart, RewardPart
from trainer.rewards.access import Access, AccessInvalid
from trainer.rewards.journal import Journal, Notes
from trainer.rewards.parts import Scalar, Services
from trainer.rewards.reason_matching import Matcher, WordsMatcher

from .scoring import RewardScorer


def reward_folders(parts: Sequence[RewardPart], models: Mapping[str, Path]) -> dict[str, Path]:
    """Folders of reward models by the name in the config, from a job's models: several are given by their paths, a single one by its role."""
    found = {}
    for i, part in enumerate(parts):
        folder = models.get(f"rewards.{i}.model", models.get("reward_model"))
        if isinstance(part, RewardModelPart) and folder is not None:
            found[part.model] = folder
    return found


@dataclass(frozen=True)
class RewardSetup:
    """Plain data, so that it can be sent to a worker. `folders` are those of reward models, by the names in the config."""

    config: OnPolicyConfig
    access: Access = field(default_factory=Access)
    folders: Mapping[str, Path] = field(default_factory=dict)

    def open(self, journal: Path | Notes | None = None) -> RewardScorer:
        """Load reward models; other services are connected to when a reward asks them. `journal` keeps values.

        Raises AccessInvalid or ModelInvalid if something that the config names is not available.
        """
        return RewardScorer(self.config, self.services(), Journal(journal) if isinstance(journal, Path) else journal)

    def services(self) -> Services:
        """The services that the parts may ask. Raises as `open` does."""
        parts = self.config.composition.parts
        scalars: dict[str, Scalar] = {}
        for part in parts:
            if isinstance(part, RewardModelPart) and part.model in self.folders and part.model not in scalars:
                from trainer.inference.reward_models import RewardModel  # loads torch, only if needed

                scalars[part.model] = RewardModel(self.folders[part.model])
        return replace(self.access.open(parts, scalars), matchers=_matchers(parts))


class Rewards(Protocol):
    """A `RewardSetup`, or another object that makes a scorer."""

    def open(self, journal: Path | None = None) -> RewardScorer: ...


def _matchers(parts: Sequence[RewardPart]) -> dict[str, Matcher]:
    """The matchers that the parts name, each loaded once. Raises AccessInvalid if the CPU does not compute in the precision."""
    wanted = {part.found_by: part for part in parts if isinstance(part, MatchedPart) and not part.asks_judge}
    found: dict[str, Matcher] = {}
    for name, part in wanted.items():
        if part.matcher == "words":
            found[name] = WordsMatcher()
            continue
        from .matchers import EmbeddingMatcher  # loads torch, only if needed

        if why := precision_problem(part.matcher_precision):
            raise AccessInvalid(f"{PRECISION_AT}: {why}")
        found[name] = EmbeddingMatcher(part.matcher_precision)
    return found


def precision_problem(precision: str) -> str:
    """The reason why the matcher cannot embed in this precision on this CPU; empty if it can."""
    from trainer.inference.products import computes_bfloat16

    if precision == "float32" or computes_bfloat16():
        return ""
    return (
        "this processor has no arithmetic for bfloat16 (neither AVX512-BF16 nor AMX), and software computes it many times slower than "
        "float32; take float32"
    )
