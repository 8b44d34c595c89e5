"""The form of a project between two requests: typed values, problems, and the resulting settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from webapp.accounts.models import Membership
from webapp.core.problems import Conflict, Invalid, Problem
from webapp.datasets import queries as datasets
from webapp.datasets.models import DatasetVersion

from .. import queries
from ..kinds import KINDS, Scale, Settings, TaskKind
from ..models import Project
from ..work import stress_judges
from . import services, size_estimate
from .strategies import STRATEGIES

MAX_CHOICES, MAX_SCALES = 200, 8
DEFAULTS = Settings()
NUMBERS = ("lease_minutes", "gold_every", "gold_recall", "fast_seconds", "reopen")
WORDS = ("reasons", "ranking", "suggestions", "publish")
TICKS = ("stress_test", "gold_feedback")
BETWEEN_LABELS = re.compile(r",\s*(?=[-+]?\d+\s*=)")  # the words of a label may hold commas
# a first scale, so that a rating project works with the defaults
EXAMPLE_SCALE = Scale(name="Helpfulness", low=1, high=5, labels={1: "useless", 3: "helps in part", 5: "all one needs"})


@dataclass
class SettingsForm:
    """The settings as the page draws them. `values` holds the typed text, so that a wrong number stays in its field."""

    values: dict[str, Any] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    workspace: int = 0

    reasons = (("required", "Required"), ("optional", "Optional"), ("none", "Not asked"))
    rankings = (("order", "The whole order"), ("best", "Only the best one"))
    suggestions = (("never", "Never shown"), ("before", "With the task"), ("after", "After the answer"))
    publishes = (("resolutions", "The resolved judgement of each task"), ("answers", "Each answer by itself"))

    @property
    def stress_judges(self) -> list[tuple[str, str]]:
        """The judges to offer, and the chosen one, also if it is no longer offered."""
        found = [(str(version), words) for version, words in stress_judges.options(self.workspace)]
        chosen = str(self.values.get("stress_judge", ""))
        return (
            found
            if not chosen or chosen in dict(found)
            else [(chosen, f"judge {chosen}, not offered any more"), *found]
        )

    @property
    def has_quality_problems(self) -> bool:
        """Whether the folded part must be open to show its errors."""
        return any(f"settings.{name}" in self.problems for name in NUMBERS)

    @staticmethod
    def drawn(settings: Mapping[str, Any]) -> dict[str, Any]:
        """Stored settings as values of inputs."""
        found = Settings.model_validate(dict(settings))
        values: dict[str, Any] = {name: getattr(found, name) for name in (*WORDS, *TICKS)}
        values |= {name: f"{getattr(found, name):g}" for name in NUMBERS}
        values["dimensions"] = "\n".join(found.dimensions)
        values["stress_judge"] = str(found.stress_judge or "")
        values["scales"] = [_drawn(scale) for scale in found.scales or (EXAMPLE_SCALE,)]
        return values

    @staticmethod
    def typed(post: QueryDict) -> dict[str, Any]:
        """The data that the browser sent, as values of inputs."""
        values: dict[str, Any] = {name: post.get(name, "") for name in (*WORDS, *NUMBERS, "dimensions", "stress_judge")}
        values |= {name: name in post for name in TICKS}
        columns = {part: post.getlist(f"scale-{part}") for part in ("name", "low", "high", "labels", "help")}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=False)]
        values["scales"] = rows[: MAX_SCALES + 1]
        return values

    @staticmethod
    def raw(values: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """`values` as `kinds.Settings` takes them. Text that is not a number stays text, and is refused at its field."""
        raw: dict[str, Any] = {name: _number(values[name]) for name in NUMBERS if str(values.get(name, "")).strip()}
        raw |= {name: values[name] for name in WORDS if values.get(name)}
        raw |= {name: bool(values.get(name)) for name in TICKS}
        raw["stress_judge"] = _number(values["stress_judge"]) if values.get("stress_judge") else None
        raw["dimensions"] = [line.strip() for line in values.get("dimensions", "").splitlines() if line.strip()]
        if kind == "rating":
            raw["scales"] = [_scale(row) for row in values.get("scales", []) if row.get("name", "").strip()]
        return raw


@dataclass
class ChangeForm(SettingsForm):
    """The form of an existing project. `values` also holds name, overlap and keys, as lines `action = key`."""

    kind: str = ""
    emptied: tuple[str, ...] = ()  # numbers whose field was cleared: the stored number is not meant
    overtaken: str = ""  # somebody else's change, which the next save replaces

    @classmethod
    def of(cls, project: Project) -> "ChangeForm":
        values = cls.drawn(project.settings)
        values |= {"name": project.name, "overlap": str(project.overlap), "keys": project.settings.get("keys", {})}
        values["base"] = services.mark(project)
        return cls(values, workspace=project.workspace_id, kind=project.kind)

    @classmethod
    def posted(cls, project: Project, post: QueryDict) -> "ChangeForm":
        values = cls.typed(post) | {name: post.get(name, "") for name in ("name", "overlap", "base")}
        actions, keys = post.getlist("key-action"), post.getlist("key")
        values["keys"] = {action: key for action, key in zip(actions, keys, strict=False) if action and key}
        emptied = tuple(name for name in NUMBERS if not post.get(name, "0").strip())
        return cls(values, workspace=project.workspace_id, kind=project.kind, emptied=emptied)

    def save(self, membership: Membership, project: Project) -> bool:
        """Whether it was saved; if not, `problems` says why."""
        overlap = _number(self.values["overlap"])
        if not isinstance(overlap, int):
            self.problems["overlap"] = "a whole number of people"
        self.problems |= {f"settings.{name}": "a number is missing" for name in self.emptied}
        if self.problems:
            return False
        settings = self.raw(self.values, project.kind) | {"keys": self.values["keys"]}
        try:
            base = self.values["base"]
            services.update(membership, project, base, name=self.values["name"], overlap=overlap, settings=settings)
        except Conflict as error:
            self.overtaken, self.values["base"] = error.message, services.mark(Project.objects.get(pk=project.pk))
            return False
        except Problem as error:
            self.problems |= error.fields or {"": error.message}
        return not self.problems


@dataclass
class ProjectForm(SettingsForm):
    """A new project. `values` also holds name, kind, dataset (a version's id), overlap, strategy and guidelines."""

    membership: Membership | None = None

    @classmethod
    def blank(
        cls, membership: Membership, version_id: str = "", like: Project | None = None, kind: str = ""
    ) -> "ProjectForm":
        """The form with the defaults, or with the settings of the project `like`; `kind` is chosen if there is such a kind."""
        values = cls.drawn(like.settings if like else {})
        newest = queries.guidelines(like).first() if like else None
        values |= {
            "name": "",
            "kind": like.kind if like else kind if kind in KINDS else next(iter(KINDS)),
            "dataset": str(like.version_id) if like else version_id,
            "overlap": str(like.overlap if like else 2),
            "strategy": like.strategy if like else Project.Strategy.ORDER.value,
            "guidelines": newest.text if newest else "",
        }
        form = cls(values, workspace=membership.workspace_id, membership=membership)
        if not values["dataset"] and form.versions:
            values["dataset"] = str(form.versions[0].pk)
        return form

    @classmethod
    def posted(cls, membership: Membership, post: QueryDict) -> "ProjectForm":
        values = cls.typed(post)
        values |= {name: post.get(name, "") for name in ("name", "kind", "dataset", "overlap", "strategy")}
        values["guidelines"] = post.get("guidelines", "")
        return cls(values, workspace=membership.workspace_id, membership=membership)

    @property
    def kinds(self) -> list[TaskKind]:
        return list(KINDS.values())

    @property
    def strategies(self) -> list[dict[str, str]]:
        return [
            {"name": name, "label": Project.Strategy(name).label, "text": text} for name, text in STRATEGIES.items()
        ]

    @property
    def versions(self) -> list[DatasetVersion]:
        """The versions to choose from, newest first."""
        assert self.membership is not None  # noqa: S101 - both ways to make a form set it
        found = datasets.offered_versions(self.membership.workspace_id)
        return list(found.order_by("-id")[:MAX_CHOICES])

    @property
    def version(self) -> DatasetVersion | None:
        chosen = str(self.values.get("dataset", ""))
        return next((version for version in self.versions if str(version.pk) == chosen), None)

    @property
    def size(self) -> size_estimate.Size | None:
        """The estimated number of tasks; None until kind and dataset are chosen."""
        version, overlap = self.version, _number(self.values.get("overlap", ""))
        if version is None or self.values["kind"] not in KINDS:
            return None
        return size_estimate.estimate_size(version, self.values["kind"], overlap if isinstance(overlap, int) else 1)

    def create(self) -> Project | None:
        """The new project, or None with `problems` filled."""
        assert self.membership is not None  # noqa: S101
        version = self.version
        overlap = _number(self.values["overlap"])
        if version is None:
            self.problems["dataset"] = "choose a dataset"
        if not isinstance(overlap, int):
            self.problems["overlap"] = "a whole number of people"
        if version is None or not isinstance(overlap, int):
            return None
        try:
            return services.create(
                self.membership,
                name=self.values["name"],
                kind=self.values["kind"],
                dataset=version,
                overlap=overlap,
                strategy=self.values["strategy"],
                settings=self.raw(self.values, self.values["kind"]),
                guidelines=self.values["guidelines"],
            )
        except Invalid as error:
            self.problems |= error.fields
            return None


def _drawn(scale: Scale) -> dict[str, str]:
    labels = ", ".join(f"{value} = {words}" for value, words in sorted(scale.labels.items()))
    return {"name": scale.name, "low": str(scale.low), "high": str(scale.high), "labels": labels, "help": scale.help}


def _scale(row: Mapping[str, str]) -> dict[str, Any]:
    """`labels` is typed as `1 = useless, 5 = perfect`. Other text is refused when labels are checked."""
    labels: dict[str, str] = {}
    for part in filter(None, (part.strip(" ,") for part in BETWEEN_LABELS.split(row.get("labels", "")))):
        value, _, words = part.partition("=")
        labels[value.strip()] = words.strip()
    return {
        "name": row["name"].strip(),
        "low": _number(row.get("low", "")),
        "high": _number(row.get("high", "")),
        "labels": labels,
        "help": row.get("help", "").strip(),
    }


def _number(text: Any) -> Any:
    """A whole or decimal number if the text is one, else the text as it is."""
    for kind in (int, float):
        try:
            return kind(str(text).strip().replace("_", "x"))  # int() would read 1_000
        except ValueError:
            continue
    return text
