"""The words of a notice, made of its event and facts alone."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.urls import reverse

from trainer.config.alarms import concern
from trainer.config.alarms import title as alarm_title
from trainer.contracts.plurals import with_noun
from webapp.core.text.texts import shortened
from webapp.experiments.sweeps import outcomes
from webapp.inference.models import MARK, STAGES

from .models import Notice

MOST_WORDS = 300
WITHOUT_NAME = re.compile(r"run \d+\Z")
REFUSED_STEPS = ("run.then_refused", "project.then_refused")
VERSIONED = ("project.published", "import.finished", "version.frozen", "judge.versioned")


@dataclass(frozen=True)
class Kind:
    """The words of an event: `said` follows the name of its thing. `trouble`: somebody has to deal with it."""

    tone: str
    icon: str
    said: str
    trouble: bool = False


KINDS: Mapping[str, Kind] = {
    "run.started": Kind(tone="info", icon="play", said="began to run"),
    "run.finished": Kind(tone="good", icon="circle-check", said="finished"),
    "run.failed": Kind(tone="bad", icon="circle-x", said="failed", trouble=True),
    "run.stopped": Kind(tone="info", icon="circle-stop", said="was stopped"),
    "run.blocked": Kind(tone="warn", icon="hourglass", said="is blocked", trouble=True),
    "run.paused": Kind(tone="info", icon="circle-pause", said="was paused"),
    "run.resumed": Kind(tone="info", icon="play", said="was resumed"),
    "run.then_refused": Kind(tone="bad", icon="circle-x", said="is not followed by the next step", trouble=True),
    "run.repeat_refused": Kind(tone="bad", icon="circle-x", said="could not be launched again", trouble=True),
    "run.stalled": Kind(tone="warn", icon="hourglass", said="stands still", trouble=True),
    "run.alert": Kind(tone="warn", icon="bell-ring", said="alerts", trouble=True),
    "run.alarm": Kind(tone="warn", icon="siren", said="may be gaming its reward", trouble=True),
    "sweep.started": Kind(tone="info", icon="play", said="was launched"),
    "sweep.finished": Kind(tone="good", icon="circle-check", said="finished"),
    "sweep.failed": Kind(tone="bad", icon="circle-x", said="failed", trouble=True),
    "sweep.stopped": Kind(tone="info", icon="circle-stop", said="was stopped"),
    "evaluation.started": Kind(tone="info", icon="play", said="began"),
    "evaluation.paused": Kind(tone="warn", icon="circle-pause", said="paused by itself", trouble=True),
    "evaluation.finished": Kind(tone="good", icon="circle-check", said="finished"),
    "evaluation.failed": Kind(tone="bad", icon="circle-x", said="failed", trouble=True),
    "evaluation.cancelled": Kind(tone="info", icon="ban", said="was cancelled"),
    "project.opened": Kind(tone="info", icon="circle-dot", said="was opened"),
    "project.paused": Kind(tone="info", icon="circle-pause", said="was paused"),
    "project.closed": Kind(tone="info", icon="archive", said="was closed"),
    "project.complete": Kind(tone="good", icon="circle-check", said="has all its answers"),
    "project.published": Kind(tone="good", icon="snowflake", said="was published as a dataset version"),
    "project.then_refused": Kind(
        tone="bad", icon="circle-x", said="is not followed by the run that waited for it", trouble=True
    ),
    "import.started": Kind(tone="info", icon="play", said="was started"),
    "import.finished": Kind(tone="good", icon="circle-check", said="finished"),
    "import.failed": Kind(tone="bad", icon="circle-x", said="failed", trouble=True),
    "curation.started": Kind(tone="info", icon="play", said="was started"),
    "curation.finished": Kind(tone="good", icon="circle-check", said="finished"),
    "curation.failed": Kind(tone="bad", icon="circle-x", said="failed", trouble=True),
    "weights_job.started": Kind(tone="info", icon="play", said="began to run"),
    "weights_job.finished": Kind(tone="good", icon="circle-check", said="finished"),
    "weights_job.failed": Kind(tone="bad", icon="circle-x", said="failed", trouble=True),
    "weights_job.stopped": Kind(tone="info", icon="circle-stop", said="was stopped"),
    "claim.refused": Kind(tone="bad", icon="circle-x", said="cannot launch its runs", trouble=True),
    "backup.failed": Kind(tone="bad", icon="circle-x", said="failed", trouble=True),
    "version.frozen": Kind(tone="info", icon="snowflake", said="has a frozen version"),
    "judge.versioned": Kind(tone="info", icon="scale", said="has a new version"),
    "model.registered": Kind(tone="info", icon="box", said="was registered"),
    "model.alias_moved": Kind(tone="info", icon="tag", said="has a new alias"),
    "model.alias_removed": Kind(tone="info", icon="tag", said="has lost an alias"),
    "model.deleted": Kind(tone="info", icon="trash-2", said="was removed from the list"),
    "model.stage_changed": Kind(tone="info", icon="flag", said="came to another stage"),
}
ABOUT = {"version": "dataset"}
"""Events whose notices are about another kind of thing than their first word."""
LEVELS = {"INFO": "info", "WARN": "warn", "ERROR": "bad"}
"""{level of an alert: its tone}"""
TROUBLE = frozenset(event for event, kind in KINDS.items() if kind.trouble)
NAMED = {
    "sweep": "Sweep",
    "evaluation": "Evaluation",
    "project": "Project",
    "import": "Import into",
    "curation": "Curation of",
    "dataset": "Dataset",
    "judge": "Judge",
    "model": "Model",
    "weights_job": "Job",
    "claim": "Claim",
    "backup": "Backup",
}
PAGES = {"run": "run", "sweep": "sweep", "evaluation": "evaluation", "project": "project", "import": "import_job"}
PAGES |= {
    "curation": "curation",
    "dataset": "dataset",
    "judge": "judge",
    "model": "model",
    "weights_job": "weights_job",
    "claim": "claim_study",
}
KEPT = frozenset(
    [
        "name",
        "title",
        "experiment",
        "recipe",
        "step",
        "reason",
        "error",
        "signal",
        "subject",
        "role",
        "headline",
        "tasks",
        "trials",
        "failed_trials",
        "measured_trials",
        "version",
        "quiet_s",
        "alias",
        "before",
        "stage",
        "judge",
        "then",
        "text",
        "level",
        "source",
    ]
)


def about(event: str) -> str:
    """The kind of thing that the notices of this event are about."""
    first = event.partition(".")[0]
    return ABOUT.get(first, first)


def page(kind: str, pk: int) -> str:
    return reverse(PAGES[kind], args=[pk])


def kept(event: str, payload: Mapping[str, object], by: int | None) -> dict[str, object]:
    """The fields of an event that the words need. The name of the person who stopped or paused something is left out, because it could not
    be removed later."""
    by_server = event == "run.stopped" and by is None  # by a limit, by its early stop or by its sweep
    out = set() if event in TROUBLE or by_server else {"reason"}
    return {name: payload[name] for name in payload if name in KEPT and name not in out}


def kind(row: Notice) -> Kind:
    """The words of its event, with the tone of the level if a program alerts, and a warning if a sweep finished without any value."""
    known = KINDS[row.event]
    if row.event == "sweep.finished" and row.facts.get("measured_trials") == 0:
        return replace(known, tone="warn", icon="triangle-alert")
    return replace(known, tone=LEVELS[row.facts["level"]]) if row.event == "run.alert" else known


def title(row: Notice) -> str:
    return f"{name(row)} {_said(row)}"


def _said(row: Notice) -> str:
    if row.event in ("model.alias_moved", "model.alias_removed"):
        return f"{KINDS[row.event].said}, {MARK}{row.facts['alias']}"
    if row.event == "run.alert":
        return f"alerts: {row.facts['title']}"
    if row.event in REFUSED_STEPS:
        return f"is not followed by “{row.facts['then']}”"
    return concern(str(row.facts["signal"])) if row.event == "run.alarm" else KINDS[row.event].said


def name(row: Notice) -> str:
    if row.about == "run":
        run = str(row.facts["name"])
        words = f"R{run[1:]}" if WITHOUT_NAME.match(run) else f"“{run}”"  # a given name keeps its first letter
        return f"{words} of {row.facts['experiment']}"
    return f"{NAMED[row.about]} “{row.facts.get('name') or row.facts['title']}”"


def text(row: Notice) -> str:
    """A further line, or an empty text."""
    facts = row.facts
    if row.event == "run.alert":
        return shortened(str(facts["text"]), MOST_WORDS)
    if why := str(facts.get("reason") or facts.get("error") or "").strip():
        return shortened(why.partition("\n")[0], MOST_WORDS)
    if row.event == "run.alarm":
        return f"{alarm_title(facts['signal'], facts['subject'], facts['role'])}, step {facts['step']}."
    if row.event == "run.stalled":
        return f"No step has ended for {with_noun(round(facts['quiet_s'] / 60), 'minutes')}. Its log says what it does."
    return _result(row.event, facts)


def _result(event: str, facts: Mapping[str, Any]) -> str:
    if event == "evaluation.finished" and isinstance(found := facts.get("headline"), dict):
        value = found.get("value")
        shown = f"{value:.3g}" if isinstance(value, int | float) else ""
        return f"{found['label']}: {shown}." if shown and found.get("label") else ""
    if event == "model.registered":
        return "A run has left it." if facts["source"] == "run" else ""
    if event in ("run.finished", "run.stopped", "run.paused"):
        return f"At step {facts['step']:,}."
    if event == "sweep.finished" and "measured_trials" in facts:  # earlier events have only the number of trials
        return outcomes.words(facts["trials"], facts["failed_trials"], facts["measured_trials"])
    if event == "sweep.finished":
        return f"{with_noun(facts['trials'], 'trials')}."
    if event == "project.complete":
        return f"{with_noun(facts['tasks'], 'tasks')}."
    if event == "model.alias_moved":
        return f"It pointed at {facts['before']} before." if facts["before"] else ""
    if event == "model.stage_changed":
        before, now = (STAGES.get(facts[each], facts[each]) or "no stage" for each in ("before", "stage"))
        return f"From {before} to {now}."
    return f"Version {facts['version']}." if event in VERSIONED else ""


def href(row: Notice) -> str:
    if row.event in ("run.failed", "run.stalled") and row.facts.get("recipe") != "logged":  # that has no log here
        return reverse("run_tab", args=[row.subject, "log"])
    if row.event == "run.then_refused":
        return reverse("run_tab", args=[row.subject, "chain"])
    if row.event == "project.then_refused":
        return reverse("project_then", args=[row.subject])
    if row.event == "run.repeat_refused":
        return reverse("repeats")
    if row.event == "backup.failed":
        return reverse("installation_backups")
    if row.event == "model.deleted":
        return reverse("models")
    if row.event == "version.frozen":
        return reverse("dataset_version", args=[row.subject, row.facts["version"]])
    there = page(row.about, row.subject)
    if row.event == "run.blocked" and row.facts.get("judge"):
        return f"{there}#judges"  # with the problem of the judge and the form of its budget
    return f"{there}#alarms" if row.event == "run.alarm" else there


@dataclass(frozen=True)
class Told:
    """One line of the list: a notice, or several of the same kind of the runs of one sweep."""

    rows: Sequence[Notice]
    title: str
    text: str
    href: str
    """Empty if its thing was deleted."""

    @property
    def newest(self) -> Notice:
        return self.rows[0]

    @property
    def kind(self) -> Kind:
        return kind(self.newest)

    @property
    def unread(self) -> bool:
        return any(row.read_at is None for row in self.rows)

    @property
    def ids(self) -> str:
        return ",".join(str(row.pk) for row in self.rows)


def folded(rows: Sequence[Notice], gone: frozenset[tuple[str, int]] = frozenset()) -> list[Told]:
    """Rows in the given order. Equal notices of the runs of one sweep, read or unread, share the line of the first."""
    lines: dict[tuple[object, ...], list[Notice]] = {}
    for row in rows:
        alone = row.sweep is None or row.about != "run"
        alike = (row.pk,) if alone else (row.event, _said(row), row.sweep, row.read_at is None)
        lines.setdefault(alike, []).append(row)
    return [_line(found, gone) for found in lines.values()]


def _line(rows: Sequence[Notice], gone: frozenset[tuple[str, int]]) -> Told:
    first = rows[0]
    if len(rows) == 1:
        return Told(rows, title(first), text(first), "" if (first.about, first.subject) in gone else href(first))
    sweep = first.facts.get("sweep_name") or "a sweep"
    said = (
        _said(first)
        .replace("was ", "were ")
        .replace("stands", "stand")
        .replace("is blocked", "are blocked")
        .replace("is not", "are not")
        .replace("learns", "learn")
        .replace("explores", "explore")
        .replace("disagrees with its sampler", "disagree with their samplers")
        .replace("its reward", "their rewards")
    )
    last = f"The last is {name(first)}"
    more = text(first)
    there = "" if ("sweep", first.sweep) in gone else reverse("sweep", args=[first.sweep])
    return Told(
        rows,
        f"{with_noun(len(rows), 'runs')} of sweep “{sweep}” {said}",
        f"{last}: {more}" if more else f"{last}.",
        there,
    )
