"""Writes a kept checkpoint as a folder that stock libraries load."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainer import checkpoints
from trainer.config import RECIPES, RecipeConfig, resolve, upgrade_stored
from trainer.contracts import ArtifactData, ModelFile
from trainer.inference.adapters import whole_directory
from trainer.loops.session.stage import StageJob, State
from trainer.monitors import RunMonitor, Spool
from trainer.storing import ObjectStore

from .client import JobClient


def work(client: JobClient) -> Mapping[str, Any]:
    """Export the checkpoint; returns `{"artifacts": [ArtifactData]}`. The items are the examples of the run, in case its folder no longer
    has them.
    """
    params, run_dir = client.assignment.params, Path(client.assignment.folder)
    kept = f"checkpoints/step-{int(params['step']):06d}"
    if client.objects:
        client.objects.fetch(kept, run_dir / kept)
    checkpoint = checkpoints.load(run_dir / kept)
    client.check()
    models = {
        role: whole_directory(source, run_dir / "merged" / role) for role, source in client.assignment.models.items()
    }
    spool = Spool(run_dir / f"export-{client.assignment.job_id}.jsonl")
    copy = run_dir / f"export-{client.assignment.job_id}-examples.jsonl"
    try:
        job = StageJob(
            RECIPES[params["recipe"]],
            resolve(params["recipe"], upgrade_stored(params["recipe"], params["config"])),
            _examples(client, run_dir, copy),
            models,
            run_dir,
            RunMonitor(spool),
            forked=bool(params.get("forked")),
        )
        recognise(checkpoint, job)
        written = _written(client, replace(job, config=single_process_config(job.config)), checkpoint)
        if client.objects:
            written = [each.model_copy(update={"files": _sent(client.objects, run_dir, each)}) for each in written]
    finally:
        spool.close()
        spool.path.unlink(missing_ok=True)
        copy.unlink(missing_ok=True)
    return {"artifacts": [artifact.model_dump(mode="json") for artifact in written]}


def _sent(store: ObjectStore, run_dir: Path, artifact: ArtifactData) -> tuple[ModelFile, ...]:
    return store.keep(run_dir / artifact.path, artifact.path)


def recognise(checkpoint: checkpoints.Loaded, job: StageJob) -> None:
    """Raises ValueError with the differences if the checkpoint is another run's. Checkpoints of the first releases do not say whose they
    are.
    """
    from trainer.loops.session.fingerprint import differences, fingerprint

    there = checkpoint.state.get("fingerprint")
    if there is not None and (found := differences(there, fingerprint(job), job.forked)):
        raise ValueError(f"the checkpoint of step {checkpoint.step} is another run's: {'; '.join(found)}")


def _written(client: JobClient, job: StageJob, checkpoint: checkpoints.Loaded) -> list[ArtifactData]:
    from trainer.loops.registry import make_stage
    from trainer.loops.session.model_outputs import write_model_output

    step = checkpoint.step
    client.phase = "restoring"
    stage = make_stage(job)
    try:
        client.check()
        stage.restore(step, State(checkpoint.state, checkpoint.tensors))
        client.phase = "exporting"
        summary = checkpoint.state.get("summary", {})
        return [
            write_model_output(job, output, step, summary, f"{output.name}-step-{step}") for output in stage.outputs()
        ]
    finally:
        stage.close()


def single_process_config(config: RecipeConfig) -> RecipeConfig:
    """The config without the workers and engines of the run, because writing weights needs none."""
    raw = config.model_dump()
    if "sampler" in raw:
        raw["sampler"] |= {"kind": "local", "push": "merged"}
    if "runner" in raw:
        raw["runner"] = {"kind": "sync"}
    if "processes" in raw["optim"]:
        raw["optim"]["processes"] = 1
    return type(config).model_validate(raw)


def _examples(client: JobClient, run_dir: Path, copy: Path) -> Path:
    """The run's own file, or `copy`, which is made from the items."""
    path = run_dir / "examples.jsonl"
    if path.is_file():
        return path
    with copy.open("w") as file:
        for item in client.items():
            file.write(item["canonical"] + "\n")
    return copy
