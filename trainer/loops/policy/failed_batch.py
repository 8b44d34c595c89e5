"""The batch that broke a run, kept for those who look for the cause."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trainer.contracts import ArtifactData, CriterionResult, PartResult
from trainer.rollouts import Trajectory


def save_offending(run_dir: Path, step: int, rows: Sequence[tuple[Trajectory, float]]) -> ArtifactData:
    """Trajectories and advantages as JSON lines, `offending-step-000012.jsonl`."""
    path = run_dir / f"offending-step-{step:06d}.jsonl"
    lines = [json.dumps({"advantage": advantage, **asdict(t)}, default=_plain) for t, advantage in rows]
    content = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    return ArtifactData(role="offending_batch", path=path.name, bytes=len(content), digest=digest)


def _plain(value: Any) -> Any:
    if isinstance(value, CriterionResult | PartResult):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
