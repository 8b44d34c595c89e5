"""Cases become work for people: where judges disagree with people, with each other or with themselves."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from django.db import transaction

from trainer.contracts import Example, Response
from webapp.accounts.models import Membership
from webapp.annotation.kinds import COMPARING
from webapp.annotation.models import Project
from webapp.annotation.projects import services as projects
from webapp.core.problems import Conflict, Invalid
from webapp.datasets.models import DatasetVersion
from webapp.datasets.queries import examples_by_key
from webapp.datasets.versions import services as datasets

from ..models import Case, Evaluation

MAX_EXAMPLES = 5_000
SIDES = ("a", "b", "response")
Brought = dict[str, dict[str, Response]]


@transaction.atomic
def make_tasks(
    membership: Membership, evaluation: Evaluation, tags: Sequence[str], *, name: str, kind: str, overlap: int = 2
) -> Project:
    """A dataset of the examples behind the cases that carry all of `tags`, and an open project on it.

    Each example keeps the responses that the cases are about, or all of them if a comparison would have only one. Raises Invalid at `name`,
    `kind`, `overlap`, `dataset` or
    `tag`, Conflict if the evaluation has no dataset.
    """
    version = evaluation.dataset_version
    if version is None:
        raise Conflict("This evaluation has no dataset, so there are no texts to ask people about.", code="no_dataset")
    found = examples_of(evaluation, version, tags, kind)
    if not found:
        raise Invalid(
            "There is nothing to ask about.", {"tag": "no case with these tags names an example of the dataset"}
        )
    made = datasets.create_dataset(
        membership, name, f"From evaluation {evaluation.pk}: {', '.join(tags) or 'all cases'}"
    )
    lineage = {"from": "evaluation", "evaluation": evaluation.pk, "tags": list(tags), "version_id": version.pk}
    listed = datasets.new_version(membership, made, iter(found), None, lineage)
    project = projects.create(membership, name=name, kind=kind, dataset=listed, overlap=overlap)
    return projects.set_state(membership, project, Project.State.OPEN)


def examples_of(evaluation: Evaluation, version: DatasetVersion, tags: Sequence[str], kind: str) -> list[Example]:
    """The examples behind the cases that carry all of `tags`, each with the responses that people are asked about.

    Raises Invalid at `tag` if they are too many for one project.
    """
    wanted, brought = _wanted(evaluation, tags)
    found = {key: _with(each, brought.get(key, {})) for key, each in examples_by_key(version, list(wanted)).items()}
    return list(_trimmed(found, wanted, kind))


def _wanted(evaluation: Evaluation, tags: Sequence[str]) -> tuple[dict[str, set[str]], Brought]:
    """example key -> ids of the responses its cases name, all of them if a case names none; and the responses that the
    cases bring with them, because the dataset does not have them."""
    rows = Case.objects.filter(evaluation=evaluation, tags__contains=list(tags)).order_by("number")
    found: dict[str, set[str]] = defaultdict(set)
    brought: Brought = defaultdict(dict)
    for subject, values in rows.values_list("subject", "values").iterator(chunk_size=1000):
        if key := subject.get("example"):
            found[key] |= {subject[side] for side in SIDES if subject.get(side)}
            if subject.get("response") and "text" in values:
                made = Response(id=subject["response"], text=values["text"], origin=subject.get("model", ""))
                brought[key][made.id] = made
    if len(found) > MAX_EXAMPLES:
        reason = f"they name {len(found):,} examples; at most {MAX_EXAMPLES:,} become tasks at once"
        raise Invalid("Too many cases are chosen.", {"tag": reason})
    return found, brought


def _with(example: Example, brought: dict[str, Response]) -> Example:
    """The example with the responses that cases bring; they replace responses of its own with the same ids."""
    if not brought:
        return example
    kept = tuple(response for response in example.responses if response.id not in brought)
    return example.model_copy(update={"responses": (*kept, *brought.values())})


def _trimmed(found: dict[str, Example], wanted: dict[str, set[str]], kind: str) -> Iterator[Example]:
    fewest = 2 if kind in COMPARING else 1
    for key, example in found.items():
        keep = wanted[key] & {response.id for response in example.responses}
        if len(keep) < fewest:
            yield example
            continue
        responses = tuple(response for response in example.responses if response.id in keep)
        preferences = tuple(each for each in example.preferences if {each.a, each.b} <= keep)
        yield example.model_copy(update={"responses": responses, "preferences": preferences})
