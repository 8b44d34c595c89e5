"""Alerts of programs: a title, a text and a level, such as `wandb.alert` sends them, for the people who watch the run.

An alert comes as a tag under `touchstone.alert.<number>`, with JSON. It is kept as the tag `alert.<number>` in words, audited, so that the
history of the run has it, and announced. If a program sends it again, because it got no answer, nothing happens. A program that alerts
without end fills no mailbox: see `SAME` and `MOST`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from webapp.core.auditing import audit
from webapp.core.models import AuditEntry
from webapp.experiments.models import Run
from webapp.webhooks.services import announce

PREFIX = "touchstone.alert."
LEVELS = ("INFO", "WARN", "ERROR")
LONGEST_TITLE, LONGEST_TEXT = 200, 4_000
SAME = timedelta(minutes=1)
"""Alerts of a run with the same title are announced once in this time."""
MOST, WITHIN = 20, timedelta(hours=1)
"""So many alerts of a run are announced in this time; the others are only tags."""


@dataclass(frozen=True)
class Alert:
    title: str
    text: str
    level: str

    @property
    def words(self) -> str:
        return f"{self.level}: {self.title}" + (f" · {self.text}" if self.text else "")


def split(tags: Mapping[str, str], known: Mapping[str, str]) -> tuple[dict[str, str], list[Alert]]:
    """The tags with alerts in words, and the alerts that `known`, the tags of the run, does not have yet."""
    kept, fresh = dict[str, str](), list[Alert]()
    for key, value in tags.items():
        alert = _read(value) if key.startswith(PREFIX) else None
        if alert is None:
            kept[key] = value
            continue
        name = f"alert.{key.removeprefix(PREFIX)}"
        kept[name] = alert.words
        if known.get(name) != alert.words:
            fresh.append(alert)
    return kept, fresh


def _read(value: str) -> Alert | None:
    """The alert in a value, cut to what is stored; None if there is none."""
    try:
        said = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or not (title := str(said.get("title", "")).strip()):
        return None
    level = str(said.get("level", "")).upper()
    text = str(said.get("text", "")).strip()[:LONGEST_TEXT]
    return Alert(title[:LONGEST_TITLE], text, level if level in LEVELS else "INFO")


def announce_alerts(run: Run, alerts: Iterable[Alert]) -> None:
    """Audits and announces them within the limits. The caller holds the lock of the run."""
    now = timezone.now()
    lately = AuditEntry.objects.filter(object_type="run", object_id=run.pk, action="run.alert")
    told = list(lately.filter(created_at__gt=now - WITHIN).values_list("created_at", "detail__title")) if alerts else []
    for alert in alerts:
        if len(told) >= MOST or any(title == alert.title and at > now - SAME for at, title in told):
            continue
        told.append((now, alert.title))
        said = {"title": alert.title, "text": alert.text, "level": alert.level}
        audit.record(run.experiment.workspace, None, "run.alert", run, **said)
        about = {"run": run.pk, "name": str(run), "experiment": run.experiment.name, "step": run.step}
        announce(run.experiment.workspace_id, "run.alert", about | said)
