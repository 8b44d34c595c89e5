"""The form that starts an evaluation: the data besides the config, and the config as the recipe's schema draws it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import uuid4

from trainer.config.errors import ConfigInvalid
from trainer.contracts.plurals import with_noun
from webapp.accounts.models import Membership
from webapp.core.forms.formtree import FormGroup, Tree
from webapp.core.forms.initial import set_at_path
from webapp.core.forms.model_schemas import schema_of
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests import idempotency
from webapp.core.requests.numbers import whole_number
from webapp.datasets import queries as datasets
from webapp.datasets.models import DatasetVersion

from .. import queries
from ..models import Evaluation, Recording
from ..recipes import RECIPES
from ..recipes.base import Recipe
from ..sources import registry as sources
from . import services, training_leaks

MAX_CHOICES = 200
WHATS = {"recording": "Recording", "dataset": "Dataset", "name": "Name"}
"""The fields that stand beside the config, with their labels."""
MAX_PATH, MAX_GIVEN = 100, 200  # characters of what a link fills in


@dataclass
class EvaluationForm:
    """The state of the form between two requests. `dataset`: "<dataset id>:<version number>"; `recording`: an id."""

    membership: Membership
    recipe: Recipe
    name: str = ""
    dataset: str = ""
    recording: str = ""
    key: str = field(default_factory=lambda: uuid4().hex)
    raw: dict[str, Any] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    rerun_of: Evaluation | None = None

    @classmethod
    def blank(cls, membership: Membership, recipe: str, query: Mapping[str, str]) -> "EvaluationForm":
        form = cls(membership, RECIPES[recipe])
        form.raw = form.tree.defaults()
        form.recording = query.get("recording", "")
        for path, text in query.items():
            if path.startswith("at.") and len(path) <= MAX_PATH and len(text) <= MAX_GIVEN and "\0" not in text:
                number = whole_number(text)
                set_at_path(form.raw, path[3:].split("."), text if number is None else number)
        choices = form.dataset_choices
        wanted = query.get("dataset", "")
        if any(value == wanted for value, _ in choices):
            form.dataset = wanted
        elif choices and form.recipe.dataset == "must":
            form.dataset = choices[0][0]
        return form

    @classmethod
    def of(cls, membership: Membership, evaluation: Evaluation) -> "EvaluationForm":
        """The form filled in with the values of that evaluation."""
        version = evaluation.dataset_version
        return cls(
            membership,
            RECIPES[evaluation.recipe],
            name=evaluation.name,
            dataset=f"{version.dataset_id}:{version.number}" if version else "",
            recording=str(evaluation.recording_id or ""),
            raw=evaluation.config,
            rerun_of=evaluation,
        )

    @classmethod
    def posted(
        cls, membership: Membership, recipe: str, post: Mapping[str, str], rerun_of: Evaluation | None = None
    ) -> "EvaluationForm":
        """The form as typed, with the change of the pressed button: a list item is added or removed."""
        form = cls(membership, RECIPES[recipe], rerun_of=rerun_of)
        form.name, form.key = post.get("name", ""), post.get("key", "")[:64] or form.key
        form.dataset, form.recording = post.get("dataset", ""), post.get("recording", "")
        form.raw = form.tree.read(post)
        form._press(post.get("action", ""))
        return form

    @property
    def tree(self) -> Tree:
        return Tree(schema_of(self.recipe.schema))

    @property
    def group(self) -> FormGroup:
        base = self.rerun_of.config if self.rerun_of else None
        drawn = self.tree.draw(self.raw, self.problems, base)
        drawn.title = "Settings"
        last = ("resources", "budget")  # resources and budget come after the other settings
        drawn.groups.sort(key=lambda group: last.index(group.path) if group.path in last else -1)
        return sources.fill(self.membership.workspace_id, drawn)

    @property
    def dataset_choices(self) -> list[tuple[str, str]]:
        if self.recipe.dataset == "no":
            return []
        rows = datasets.offered_versions(self.membership.workspace_id, self._version())
        rows = rows.order_by("dataset__name", "-number")[:MAX_CHOICES]
        return [(f"{row.dataset_id}:{row.number}", _version_label(row)) for row in rows]

    @property
    def recording_choices(self) -> list[tuple[str, str]]:
        if self.recipe.recording == "no":
            return []
        rows = queries.recordings(self.membership.workspace_id).filter(kind=self.recipe.recorded)[:MAX_CHOICES]
        what, whose = ("scores", "model") if self.recipe.recorded == "scores" else ("verdict pairs", "judge")
        return [
            (str(row.pk), f"{row.name} · {row.rows:,} {what} of {row.judges} {whose}{'s' * (row.judges != 1)}")
            for row in rows
        ]

    @cached_property
    def leaking(self) -> dict[str, Any]:
        """The examples of the dataset that the models in the form have seen: {"leaks", "near"}."""
        return training_leaks.of_config(self.membership.workspace_id, self.recipe, self.raw, self._version())

    @property
    def other_problems(self) -> dict[str, str]:
        """Problems that no input of the form shows."""
        shown = {each.path for each in self.group.every_input()} | {*WHATS}
        return {path: message for path, message in self.problems.items() if path not in shown}

    @property
    def to_fix(self) -> list[tuple[str, str]]:
        """The problems in the order of the page: the id of each field and its label."""
        whats = [(f"f-{name}", label) for name, label in WHATS.items() if name in self.problems]
        return whats + [*self.group.places_to_fix()]

    def check(self) -> bool:
        """Fills `problems`. True if the evaluation could be started with these values."""
        try:
            services.plan(self.membership, self.recipe.name, self.raw, self._version(), self._recording())
        except ConfigInvalid as error:
            self.problems = {problem.path: problem.message for problem in reversed(error.problems)}
        return not self.problems

    def create(self) -> Evaluation | None:
        """The evaluation, or None with `problems` filled."""
        if not self.check():
            return None
        try:
            return self._create()
        except idempotency.KeyReused:  # somebody went back to a form that had started one, and changed it
            self.key = uuid4().hex
            return self._create()
        except Invalid as error:
            self.problems = dict(error.fields) or {"": error.message}
        except Conflict as error:
            self.problems = {"": error.message}
        return None

    def _create(self) -> Evaluation:
        asked = (
            self.recipe.name,
            self.raw,
            self.dataset,
            self.recording,
            self.name,
            self.rerun_of and self.rerun_of.pk,
        )
        return services.create(
            self.membership,
            recipe=self.recipe.name,
            config=self.raw,
            dataset=self._version(),
            recording=self._recording(),
            name=self.name,
            rerun_of=self.rerun_of,
            key=idempotency.key(self.key, asked),
        )

    def _version(self) -> DatasetVersion | None:
        dataset, _, number = self.dataset.partition(":")
        which, version = whole_number(dataset), whole_number(number, 9)
        if which is None or version is None:
            return None
        rows = DatasetVersion.objects.filter(dataset__workspace=self.membership.workspace, dataset_id=which)
        return rows.select_related("dataset").filter(number=version).first()

    def _recording(self) -> Recording | None:
        recording = whole_number(self.recording)
        if recording is None:
            return None
        return queries.recordings(self.membership.workspace_id).filter(pk=recording).first()

    def _press(self, action: str) -> None:
        verb, _, path = action.partition(":")
        if verb == "add" and isinstance(self.raw.get(path), list):
            self.raw[path].append(self.tree.item(path))
        elif verb == "remove":
            name, _, place = path.rpartition(".")
            items, index = self.raw.get(name), whole_number(place)
            if isinstance(items, list) and index is not None and index < len(items):
                items.pop(index)


def _version_label(row: DatasetVersion) -> str:
    count = row.counts.get("examples")
    size = f" · {with_noun(count, 'examples')}" if isinstance(count, int) else ""
    return f"{row.dataset.name} · v{row.number}{size}{' · draft' if row.state == 'draft' else ''}{' · archived' if row.dataset.archived_at else ''}"
