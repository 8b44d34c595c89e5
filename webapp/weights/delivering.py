"""What a model has generated becomes a version of a dataset."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from trainer.contracts import Example, Response
from webapp.accounts.models import Membership, User, Workspace
from webapp.core import locks
from webapp.core.problems import Invalid, Problem
from webapp.datasets import imports
from webapp.datasets import services as datasets
from webapp.datasets.models import Dataset, DatasetVersion

from .kinds import examples
from .models import WeightsJob
from .states import State, refresh, tell

SAMPLING = ("temperature", "top_p", "max_new_tokens", "stop", "seed")


def check(workspace: Workspace, user: User | None, name: str) -> None:
    """Raises Invalid at `dataset` where no version could be made there. Empty: none is wanted."""
    if not name:
        return
    try:
        imports.dataset_name(name)
    except Invalid as problem:
        raise Invalid(
            "The dataset cannot be called that.", {"dataset": "; ".join(problem.fields.values())}
        ) from problem
    if Dataset.every.filter(workspace=workspace, name=name, archived_at__isnull=False).exists():
        raise Invalid(
            "The dataset is archived.", {"dataset": f"{name} is archived; restore it, or choose another name"}
        )
    if user is None:
        raise Invalid("Nobody asks for the dataset.", {"dataset": "a dataset is made for a person of the workspace"})


def is_wanted(job: WeightsJob) -> bool:
    """Whether a version is still to be made."""
    wanted = job.kind == WeightsJob.Kind.GENERATE and bool(job.params.get("dataset"))
    return wanted and job.state == State.FINISHED and not {"version", "problem"} & job.outcome.keys()


def undelivered(before: datetime) -> list[int]:
    """Jobs that have ended before that moment and whose message got lost."""
    rows = WeightsJob.objects.filter(kind=WeightsJob.Kind.GENERATE, state=State.FINISHED, ended_at__lt=before)
    rows = rows.filter(params__has_key="dataset").exclude(params__dataset="")
    return list(rows.exclude(outcome__has_any_keys=["version", "problem"]).values_list("pk", flat=True)[:20])


def deliver(pk: int) -> None:
    """Makes the version once; a second call finds it made. What stands in the way is told in `outcome["problem"]`."""
    with locks.alone(locks.Work.DELIVER, pk) as ours:
        job = WeightsJob.objects.select_related("workspace", "model", "version__dataset", "created_by").filter(pk=pk)
        row = job.first() if ours else None
        if row is None or not is_wanted(row):
            return
        try:
            found = _delivered(row)
        except Problem as problem:
            found = {"problem": "; ".join([problem.message, *problem.fields.values()])}
        WeightsJob.objects.filter(pk=pk).update(outcome=row.outcome | found)
        refresh(row)
        tell(row)


def _delivered(job: WeightsJob) -> dict[str, Any]:
    membership = Membership.objects.filter(workspace=job.workspace, user=job.created_by).select_related("user").first()
    if membership is None:
        raise Invalid("Whoever asked for the dataset is no longer a member of the workspace: generate again.")
    left_out: list[str] = []
    dataset = Dataset.objects.filter(workspace=job.workspace, name=job.params["dataset"]).first()
    dataset = dataset or datasets.create_dataset(membership, job.params["dataset"])
    version = datasets.new_version(membership, dataset, _records(job, left_out), None, _lineage(job))
    if not version.counts["examples"]:
        raise Invalid(f"No prompt got a response: {left_out[0] if left_out else 'there was none'}.")
    return {"dataset": dataset.pk, "version": version.number, "left_out": len(left_out)}


def _lineage(job: WeightsJob) -> dict[str, Any]:
    model, version = job.model, job.version
    return {
        "from": "generated",
        "job": job.pk,
        "model": model.name if model else "",
        "prompts": str(version) if isinstance(version, DatasetVersion) else "",
        "sampling": {name: job.params[name] for name in SAMPLING},
    }


def _records(job: WeightsJob, left_out: list[str]) -> Iterator[Example]:
    """The prompts with what was generated for them; those without a response are left out, with the reason."""
    results = job.results.order_by("place").values_list("content", flat=True).iterator(chunk_size=500)
    for example, content in zip(examples(job, 0), results, strict=False):
        if "problem" in content:
            left_out.append(f"{example.key} {content['problem']}")
        else:
            yield _record(job, example, content["responses"])


def _record(job: WeightsJob, example: Example, generated: list[dict[str, Any]]) -> Example:
    """`meta.generated` says of each response by its id who wrote it and how; `sample` counts from 0."""
    keep = bool(job.params["keep"])
    name = job.model.name if job.model else ""
    taken = {response.id for response in example.responses} if keep else set()
    made: dict[str, tuple[Response, dict[str, Any]]] = {}
    for sample, one in enumerate(generated):
        said = f"m{job.model_id}-{sample}"
        while said in taken or said in made:
            said += "x"
        facts = {name: job.params[name] for name in SAMPLING} | {"sample": sample}
        facts |= {"model": name, "finish_reason": one["finish_reason"], "tokens": one["tokens"]}
        made[said] = Response(id=said, text=one["text"], origin=name), facts
    meta = {key: value for key, value in example.meta.items() if keep or key not in ("generated", "rewards")}
    kept = meta.get("generated", {})
    meta["generated"] = (kept if isinstance(kept, dict) else {}) | {said: facts for said, (_, facts) in made.items()}
    return example.model_copy(
        update={
            "responses": (*(example.responses if keep else ()), *(response for response, _ in made.values())),
            "preferences": example.preferences if keep else (),
            "meta": meta,
        }
    )
