"""The form that launches a run: the choices besides the config, the config itself, and what follows from both."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar
from uuid import uuid4

from django.utils import timezone
from pydantic import ValidationError

from trainer.config import RECIPES, ConfigInvalid, Recipe, RecipeConfig, presets, resolve
from trainer.config.presets import Preset
from trainer.config.rewards.expression import ExpressionInvalid, parse
from trainer.config.sections.phases import Line
from trainer.contracts.plurals import with_noun
from webapp.accounts.models import Membership
from webapp.core.forms.formtree import FormGroup, Tree
from webapp.core.forms.initial import fill_in
from webapp.core.forms.model_schemas import schema_of
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests import idempotency
from webapp.core.requests.numbers import whole_number
from webapp.datasets.models import DatasetVersion
from webapp.datasets.versions import training_counts
from webapp.inference import queries as inference
from webapp.inference.models import RegisteredModel
from webapp.inference.promotion import queries as promotion

from ..lifecycle import retries, schedule, utc_times
from ..models import RETRIES, Experiment, Run
from ..outputs import trained_on
from ..recipes import choices
from . import checks, devices, drafts, expected, memory, named_rows, pickers
from . import services as launch_services
from .typed_limits import LABELS, TypedLimits

MAX_CHOICES = 200
MAX_JSON = 200_000
MAX_UNDO = 20_000
EXPRESSION = "reward_expression"
WHATS = {"dataset": "Dataset", "experiment": "Experiment", "name": "Name"}
WHATS |= {schedule.FIELD: "Start not before", retries.FIELD: "Retries", **LABELS}


@dataclass
class RunForm:
    """The state of the form between two requests. `base` is what changes are compared with: a run, or the defaults."""

    membership: Membership
    recipe: str = "policy"
    name: str = ""
    experiment: str = ""
    not_before: str = ""  # a date and a time in UTC
    retries: str = str(RETRIES)
    limits: TypedLimits = field(default_factory=lambda: TypedLimits("policy"))
    dataset: str = ""  # "<dataset id>:<version number>"
    key: str = field(default_factory=lambda: uuid4().hex)
    as_json: bool = False
    json_text: str = ""
    raw: dict[str, Any] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    forked_from: Run | None = None
    start_step: int = 0  # the step of the checkpoint of `forked_from` to continue from
    filled: dict[str, Any] = field(default_factory=dict)  # the preset that filled fields last, and their values before
    waits_for: ClassVar[str] = ""  # what it is launched after, in words; empty: at once
    draft: ClassVar[Run | None] = None  # the draft that it edits

    @classmethod
    def blank(
        cls, membership: Membership, recipe: str = "policy", dataset: str = "", given: Mapping[str, str] | None = None
    ) -> "RunForm":
        """The form with the defaults, with what a link has `given` (see `fill`), and with the version that `dataset` names, or one on which
        such a run can train. Defaults that contradict what was given are changed."""
        form = cls(membership, recipe=recipe if recipe in RECIPES else "policy")
        form.limits = TypedLimits(form.recipe)
        form.raw = form.tree.defaults()
        models, given = form.model_choices, given or {}
        if models and form.raw["model"]["name"] not in models:
            form.raw["model"] = {**form.raw["model"], "name": models[0]}
        config = form._agreed(given) if given else None
        found = choices.named_version(membership.workspace_id, dataset) or choices.fitting_version(
            membership.workspace_id, RECIPES[form.recipe], config
        )
        form.dataset = f"{found.dataset_id}:{found.number}" if found else ""
        if found and (counts := training_counts.known(found)):
            form.raw = launch_services.merged(form.raw, RECIPES[form.recipe].schema.suited(counts))
            form.fill(given)
        return form

    def _agreed(self, given: Mapping[str, str]) -> RecipeConfig | None:
        """Fills in what was given, and changes defaults that contradict it. Returns the config; None if it cannot be read."""
        try:
            self.fill(given)
            read = self._recipe.schema.model_validate
            self.raw = launch_services.merged(self.raw, read(self.raw).agreeing())
            self.fill(given)
            return read(self.raw)
        except ValidationError:
            return None

    @classmethod
    def of_run(cls, membership: Membership, run: Run, start_step: int = 0) -> "RunForm":
        """The form filled in to run `run` again, or to continue from one of its checkpoints: from the last, for as many steps again."""
        version = run.data
        raw = named_rows.config_today(run)
        if start_step >= raw["steps"]:
            raw = raw | {"steps": raw["steps"] + start_step}
        return cls(
            membership,
            recipe=run.recipe,
            experiment=run.experiment.name,
            dataset=f"{version.dataset_id}:{version.number}",
            raw=raw,
            retries=str(run.retries),
            limits=TypedLimits.of_run(run),
            forked_from=run,
            start_step=start_step,
        )

    @classmethod
    def posted(cls, membership: Membership, post: Mapping[str, str], forked_from: Run | None = None) -> "RunForm":
        """The form as typed, changed by the pressed button: one list item more or less, or a switch between form and JSON."""
        form = cls(membership, forked_from=forked_from)
        form.recipe = post.get("recipe", "policy") if post.get("recipe") in RECIPES else "policy"
        form.name, form.experiment = post.get("name", ""), post.get("experiment", "")
        form.not_before, form.retries = post.get("not_before", "")[:40], post.get("retries", form.retries)[:10]
        form.limits = TypedLimits.posted(form.recipe, post)
        form.dataset, form.key = post.get("dataset", ""), post.get("key", "")[:64] or form.key
        form.start_step = (whole_number(post.get("start_step", ""), 9) or 0) if forked_from else 0
        form.as_json, form.json_text = post.get("mode") == "json", post.get("json", "")
        form.raw = form._read_json() if form.as_json else form.tree.read(post)
        form.filled = _filled(post.get("filled", ""))
        form._press(post.get("action", ""))
        return form

    @property
    def title(self) -> str:
        """The title of the recipe: what the run does, and the name of its experiment if nobody names one."""
        return RECIPES[self.recipe].title

    @property
    def _recipe(self) -> Recipe:
        return RECIPES[self.recipe]

    @property
    def tree(self) -> Tree:
        return Tree(schema_of(self._recipe.schema))

    @cached_property
    def group(self) -> FormGroup:
        parent = self.forked_from
        base = named_rows.config_today(parent) if parent else None
        drawn = pickers.fill(self.membership.workspace_id, self.tree.draw(self.raw, self.problems, base), self._recipe)
        opened = self._recipe.opened
        drawn.groups.sort(key=lambda group: opened.index(group.path) if group.path in opened else len(opened))
        for group in drawn.groups:
            group.folded = group.path not in opened
            for each in group.inputs:
                if each.path == EXPRESSION:
                    each.names = tuple(name for name in _part_names(self.raw) if name)
        return drawn

    @property
    def presets(self) -> list[tuple[Preset, bool]]:
        """The presets of the recipe, and whether the form has all values of each."""
        return [(each, not self._recipe.filled_by(each, self.raw)) for each in self._recipe.presets]

    @property
    def preset(self) -> Preset | None:
        """The preset that filled fields last."""
        return self._recipe.preset(str(self.filled.get("preset")))

    @property
    def filled_json(self) -> str:
        return json.dumps(self.filled) if self.filled else ""

    @property
    def filled_labels(self) -> list[str]:
        """The changes of the last preset, as the form calls them."""
        titles = {each.path: each.title for each in self.group.every_group() if each.path}
        labels = titles | {each.path: each.label for each in self.group.every_input()}
        return [labels.get(path, path) for path in self.filled.get("values", {})]

    @property
    def recipes(self) -> list[Any]:
        return list(RECIPES.values())

    @property
    def other_problems(self) -> dict[str, str]:
        """Problems that no input of the form shows: unknown keys in JSON, the config as a whole."""
        if self.as_json:
            return self.problems
        shown = _paths(self.group) | {*WHATS, "json"}
        return {path: message for path, message in self.problems.items() if path not in shown}

    @property
    def to_fix(self) -> list[tuple[str, str]]:
        """The problems in the order of the page: the id of each field and its label."""
        if self.as_json:
            return []
        whats = [(f"f-{name}", label) for name, label in WHATS.items() if name in self.problems]
        return whats + [*self.group.places_to_fix()]

    @cached_property
    def dataset_choices(self) -> list[tuple[str, str]]:
        workspace_id = self.membership.workspace_id
        rows = choices.versions(workspace_id, choices.named_version(workspace_id, self.dataset))[:MAX_CHOICES]
        return [(f"{row.dataset_id}:{row.number}", _version_label(row)) for row in rows]

    @cached_property
    def leaking(self) -> dict[str, Any]:
        """Prompts that are both trained on and held out, {"leaks", "near"}; empty without a dataset."""
        workspace_id = self.membership.workspace_id
        version = choices.named_version(workspace_id, self.dataset)
        return trained_on.leaking(workspace_id, version, self.recipe, self.raw) if version else {}

    @property
    def model_choices(self) -> list[str]:
        """The models with which a run can begin, newest first."""
        return list(inference.usable(self.membership.workspace_id).values_list("name", flat=True)[:MAX_CHOICES])

    @property
    def experiment_choices(self) -> list[str]:
        rows = Experiment.objects.filter(workspace=self.membership.workspace).order_by("-id")
        return list(rows.values_list("name", flat=True)[:MAX_CHOICES])

    @property
    def derived(self) -> list[dict[str, str]]:
        amounts = RECIPES[self.recipe].schema.amounts(self.raw)
        return [{"label": each.label, "value": _count(each.value), "how": each.how} for each in amounts]

    @property
    def outline(self) -> list[Line]:
        """The phases of the run, as far as they are known."""
        return RECIPES[self.recipe].schema.outline(self.raw)

    @property
    def instead_of_phases(self) -> str:
        """Words about a recipe without phases: what it has instead of them."""
        schema = self._recipe.schema
        return "" if schema.phase_kind else schema.instead_of_phases

    @cached_property
    def notes(self) -> list[str]:
        """Notes on the data for the config, as far as the version is counted. They need no model."""
        version = choices.named_version(self.membership.workspace_id, self.dataset)
        counts = training_counts.stored_counts(version) if version else None
        config = self._config or self._config_of_some_model
        return list(config.data_notes(counts)) if counts and config else []  # problems of a config are said

    @property
    def asks_judges(self) -> bool:
        """Whether the run would ask judges; True if that is not known, or if a limit on them is typed."""
        if self.limits.budget_tokens or self.limits.budget_money or self._config is None:
            return True
        return any(slot.kind == "judge" for slot in self._recipe.filled(self._config))

    @property
    def device(self) -> devices.Expected:
        return devices.expected()

    @cached_property
    def memory(self) -> memory.ShownForecast:
        """The memory that the run would need, as far as it is known."""
        if self._config is None:
            return memory.ShownForecast(unknown="shown when the config is valid")
        return memory.shown_forecast(self._config, self._model)

    @cached_property
    def time(self) -> expected.ExpectedTime:
        """The time that the run would take here, as far as earlier runs show it."""
        if self._config is None:
            return expected.ExpectedTime(how="shown when the config is valid")
        return expected.time(self.membership.workspace_id, self.recipe, self._config, self._model)

    @cached_property
    def judges(self) -> expected.ExpectedUse | None:
        """The expected use of its judges; None if it asks none, or the config is not valid."""
        return expected.judges(self.membership.workspace_id, self.recipe, self._config) if self._config else None

    @cached_property
    def _config(self) -> RecipeConfig | None:
        """The config with every default; None if it is not valid."""
        try:
            return resolve(self.recipe, self.raw)
        except ConfigInvalid:
            return None

    @property
    def _config_of_some_model(self) -> RecipeConfig | None:
        """The config as if a model had been chosen; None if one has been, or if anything else is wrong."""
        section = self.raw.get("model", {})
        if not isinstance(section, dict) or section.get("name"):
            return None
        try:
            return resolve(self.recipe, checks.with_model(self.raw, "some model"))
        except ConfigInvalid:
            return None

    @cached_property
    def _model(self) -> RegisteredModel | None:
        return promotion.named(self.membership.workspace_id, self._config.model.name) if self._config else None

    def fill(self, given: Mapping[str, str]) -> None:
        """Texts for dotted paths of the config, as a link to the form gives them; see `fill_in`."""
        fill_in(self.raw, given)

    def check(self) -> bool:
        """Fills `problems`; True if a run could be launched as it stands."""
        if "json" in self.problems:
            return False
        self.problems = {}
        try:
            plan = checks.plan(self.membership, self.recipe, self.raw, self._choice(), None)
            if self.forked_from and self.start_step:
                checks.continues(plan, self.forked_from, self.start_step)
        except ConfigInvalid as error:
            self.problems = {problem.path: problem.message for problem in reversed(error.problems)}
            self._check_expression()
        self._starts()
        self._tries()
        self.limits.read()
        self.problems |= self.limits.problems
        return not self.problems

    def _starts(self) -> datetime | None:
        """The typed time of the start; an error in it is a problem."""
        try:
            moment = utc_times.read(self.not_before)
            told = schedule.problem(moment, timezone.now())
        except ValueError:
            moment, told = None, "is not a date and time"
        if told:
            self.problems[schedule.FIELD] = told
        return moment

    def _tries(self) -> int:
        """The typed number of retries; an error in it is a problem."""
        count = whole_number(self.retries.strip() or str(RETRIES), 4)
        if count is None or count > retries.MOST:
            self.problems[retries.FIELD] = f"must be a whole number between 0 and {retries.MOST}"
        return RETRIES if count is None else count

    def _check_expression(self) -> None:
        """Checks the expression against the present names of the parts, even if other values of the config are wrong."""
        text = self.raw.get(EXPRESSION)
        if EXPRESSION in self.problems or not isinstance(text, str) or not text.strip():
            return
        try:
            parse(text, _part_names(self.raw))
        except ExpressionInvalid as error:
            self.problems[EXPRESSION] = str(error)

    def launch(self) -> Run | None:
        """The run, or None with `problems` filled."""
        return self._made(self._launch) if self.check() else None

    def save(self) -> Run | None:
        """The form as a draft, problems of its config included; None if a draft cannot keep something, which `problems` says."""
        self.check()
        own = {"json", *WHATS} - {"dataset"}
        return None if own & self.problems.keys() else self._made(self._save)

    def _made(self, make: Callable[[], Run]) -> Run | None:
        try:
            return idempotency.sent(self, make)
        except ConfigInvalid as error:  # something else changed it between the check and the launch
            self.problems = {problem.path: problem.message for problem in error.problems}
        except Invalid as error:
            self.problems = dict(error.fields) or {"": error.message}
        except Conflict as error:
            self.problems = {"": error.message}
        return None

    def _launch(self) -> Run:
        return launch_services.launch(self.membership, key=self.key, **self._asked())

    def _save(self) -> Run:
        return drafts.save(self.membership, drafts.RunDraft(**self._asked()), self.key)

    def _asked(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe,
            "config": self.raw,
            "dataset": self._choice(),
            "experiment": self.experiment.strip() or None,
            "name": self.name,
            "forked_from": self.forked_from,
            "start_step": self.start_step,
            "not_before": self._starts(),
            "retries": self._tries(),
            "limits": self.limits.read(),
        }

    def _choice(self) -> checks.DatasetChoice:
        dataset, _, version = self.dataset.partition(":")
        which, number = whole_number(dataset), whole_number(version, 9)
        return (
            checks.DatasetChoice() if which is None or number is None else checks.DatasetChoice(which, version=number)
        )

    def _read_json(self) -> dict[str, Any]:
        try:
            if len(self.json_text) > MAX_JSON:
                raise ValueError(f"longer than {MAX_JSON:,} characters")
            found = json.loads(self.json_text or "{}")
            if not isinstance(found, dict):
                raise ValueError("the config is a JSON object: { ... }")
            return found
        except (ValueError, RecursionError) as error:
            self.problems["json"] = f"not valid JSON: {error}"
            return {}

    def _press(self, action: str) -> None:
        verb, _, path = action.partition(":")
        if verb == "json" and not self.as_json:
            self.as_json, self.json_text = True, json.dumps(self.raw, indent=2, ensure_ascii=False)
        elif verb == "form" and self.as_json and "json" not in self.problems:
            self.as_json = False
        elif verb == "preset" and not self.as_json and (preset := self._recipe.preset(path)):
            found = self._recipe.filled_by(preset, self.raw)
            self.filled = {"preset": preset.name, "values": presets.values_at(self.raw, found)}
            self.raw = presets.with_values(self.raw, found)
        elif verb == "undo":
            self.raw = presets.with_values(self.raw, self.filled.get("values", {}))
            self.filled = {}
        elif verb == "add":
            items = _list_at(self.raw, path)
            item = self.tree.item(path) if items is not None else None
            if items is not None and item is not None:
                items.append(item)
        elif verb in ("remove", "up", "down"):
            parent, _, place = path.rpartition(".")
            items, index = _list_at(self.raw, parent), whole_number(place)
            if items is not None and index is not None and index < len(items):
                _move(items, index, verb)


def _move(items: list[Any], index: int, verb: str) -> None:
    """Takes an item out, or lets it change places with the one before or behind it; at an end nothing happens."""
    if verb == "remove":
        items.pop(index)
        return
    other = index - 1 if verb == "up" else index + 1
    if 0 <= other < len(items):
        items[index], items[other] = items[other], items[index]


def _filled(text: str) -> dict[str, Any]:
    """The preset that the page sends back: its name, and the values before it by their paths. Empty if it is anything else."""
    try:
        found = json.loads(text) if text and len(text) <= MAX_UNDO else {}
    except (ValueError, RecursionError):
        return {}
    values = found.get("values") if isinstance(found, dict) else None
    return found if isinstance(values, dict) and len(values) <= MAX_CHOICES else {}


def _part_names(raw: dict[str, Any]) -> list[str]:
    """The names of the parts of an unchecked config that count: its expression may use them."""
    parts = raw.get("rewards")
    named = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return [str(part.get("name") or part.get("kind") or "rubric") for part in named if not part.get("shadow")]


def _list_at(raw: Any, path: str) -> list[Any] | None:
    node = raw
    for part in path.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return node if isinstance(node, list) else None


def _paths(group: FormGroup) -> set[str]:
    found = {group.path, *(item.path for item in group.inputs)} - {""}
    for child in [*group.groups, *group.items]:
        found |= _paths(child)
    return found


def _version_label(row: DatasetVersion) -> str:
    count = row.counts.get("examples")
    size = f" · {with_noun(count, 'examples')}" if isinstance(count, int) else ""
    return f"{row.dataset.name} · v{row.number}{size}{' · draft' if row.state == 'draft' else ''}{' · archived' if row.dataset.archived_at else ''}"


def _count(value: int | None) -> str:
    if value is None:
        return "–"
    for size, letter in ((10**9, "G"), (10**6, "M")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:,}"
