"""Loads models for a process of a run on its node: from folders that all nodes see, or from copies out of object storage.

The server tells the run's own process where its models are. A worker that Ray has started on
another node can learn it too, because Ray gives it the same variables.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import httpx

from trainer.contracts import JudgeGrant, ModelSource, RunAssignment
from trainer.inference.adapters import whole_directory
from trainer.rewards.access import Access, granted, relayed
from trainer.rollouts import RewardSetup, reward_folders
from trainer.storing import ObjectStore, StorageAway, scratch

_TIMEOUT = httpx.Timeout(30.0, connect=5.0)


def address() -> str:
    """The run's address on its server; empty if no server has started this process."""
    url, run = os.environ.get("TOUCHSTONE_URL", ""), os.environ.get("TOUCHSTONE_RUN_ID", "")
    return f"{url.rstrip('/')}/api/v1/ingest/runs/{run}" if url and run else ""


def store(url: str, token: str) -> ObjectStore | None:
    return ObjectStore(url, token, scratch(url)) if url else None


def sources(models: Mapping[str, ModelSource], store: ObjectStore | None) -> dict[str, ModelSource]:
    """The models by role, with folders of this node. Raises StorageAway, StoreRefused and OSError."""
    return {role: store.source(source) if store else source for role, source in models.items()}


def access(assignment: RunAssignment, token: str, store: ObjectStore | None) -> Access:
    """The judges and services that the rewards ask. Raises AccessInvalid, StorageAway, StoreRefused and OSError."""
    judges = {name: _grant(grant, store) for name, grant in assignment.judges.items()}
    found = granted(judges, assignment.judges_url, token, assignment.verdicts_url)
    return relayed(found, assignment.services, assignment.services_url, token)


def _grant(grant: JudgeGrant, store: ObjectStore | None) -> JudgeGrant:
    if store is None or not grant.local:
        return grant
    here = store.source(ModelSource(path=grant.local, adapters=grant.adapters))
    return grant.model_copy(update={"local": here.path, "adapters": here.adapters})


def model(folder: Path, role: str) -> Path:
    """The folder of the run's model `role`: the given one, or a copy on this node if the node does not see that folder.

    Raises StorageAway, StoreRefused, ModelInvalid and OSError.
    """
    if folder.is_dir() or not address():
        return folder
    assignment, found = _again()
    if found is None or role not in assignment.models:
        return folder
    try:
        return _whole(assignment, found, role)
    finally:
        found.close()


def rewards(setup: RewardSetup) -> RewardSetup:
    """The setup with folders of this node for reward models and for judges with local weights."""
    targets = [getattr(judge.target, "model", "") for judge in setup.access.judges.values() if judge.store is not None]
    seen = [*setup.folders.values(), *(Path(each) for each in targets)]
    if all(each.is_dir() or not each.is_absolute() for each in seen) or not address():
        return setup
    assignment, found = _again()
    if found is None:
        return setup
    try:
        models = {role: _whole(assignment, found, role) for role in assignment.models if role.startswith("reward")}
        token = os.environ["TOUCHSTONE_RUN_TOKEN"]
        folders = reward_folders(setup.config.composition.parts, models)
        return replace(setup, access=access(assignment, token, found), folders=folders)
    finally:
        found.close()


def _whole(assignment: RunAssignment, found: ObjectStore, role: str) -> Path:
    kept = scratch(assignment.store_url) / "merged" / f"{assignment.run_id}-{assignment.attempt}" / role
    return whole_directory(found.source(assignment.models[role]), kept)


def _again() -> tuple[RunAssignment, ObjectStore | None]:
    """The assignment that the server has given the run's process, and the store. Raises StorageAway."""
    token = os.environ.get("TOUCHSTONE_RUN_TOKEN", "")

    try:
        answer = httpx.get(
            address(), headers={"Authorization": f"Bearer {token}"}, timeout=_TIMEOUT, trust_env=False
        ).raise_for_status()
    except httpx.HTTPError as error:  # the caller that started this worker starts another
        raise StorageAway(f"the server does not say what this worker shall load ({type(error).__name__})") from None
    assignment = RunAssignment.model_validate_json(answer.content)
    return assignment, store(assignment.store_url, token)
