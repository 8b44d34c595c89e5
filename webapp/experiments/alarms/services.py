"""Alarms of runs: the policy may be gaming its reward, or it learns nothing or badly. Each is stored once, sent to webhooks, and sent to people on a
click."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db import transaction
from django.db.models import Q
from django.db.models.fields.json import KeyTextTransform
from django.urls import reverse

from trainer.config.alarms import SIGNALS, alarm_text, page, title
from trainer.config.alarms import heading as heading_of
from trainer.contracts import AlarmData, RunEvent
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict
from webapp.core.tasks import enqueue
from webapp.webhooks.services import announce

from ..models import GradedResponse, Rollout, Run, RunAlarm

PHASE = "train"
_EXCERPT = 600
"""Characters of a response on the run's page."""
Place = tuple[int, int, int]  # step, group, index


@dataclass(frozen=True)
class AlarmExample:
    """A response that shows it; `text` is empty if it is gone, and ends in an ellipsis if it was cut."""

    group: int
    index: int
    text: str
    reward: float | None


@dataclass(frozen=True)
class DescribedAlarm:
    """An alarm in words. `asked`: its responses that went to people; `left_out`: those about which nobody can be asked, and `why`."""

    row: RunAlarm
    data: AlarmData
    examples: tuple[AlarmExample, ...]
    asked: int
    left_out: int
    why: str

    @property
    def title(self) -> str:
        return title(self.data.signal, self.data.subject, self.data.role)

    @property
    def told(self) -> str:
        return alarm_text(self.data, self.row.step)

    @property
    def look(self) -> str:
        """The advice: signs to look for in the responses, or a remedy."""
        sign = SIGNALS.get(self.data.signal)
        return sign.look if sign else ""

    @property
    def help(self) -> str:
        """The address of the page of the help that says more, with its heading."""
        name, mark, anchor = page(self.data.signal).partition("#")
        return f"{reverse('help_page', args=[name.removesuffix('.md')])}{mark}{anchor}"


def heading(alarms: Iterable[DescribedAlarm]) -> str:
    """The heading over the alarms of a run."""
    return heading_of([each.data.signal for each in alarms])


def row(run: Run, event: RunEvent, data: AlarmData) -> RunAlarm:
    """The row of an alarm. Each role of a run has its own alarms."""
    content = data.model_dump(mode="json")
    subject = f"{data.role}: {data.subject}"[:200] if data.role else data.subject
    return RunAlarm(run=run, signal=data.signal, subject=subject, step=event.step, content=content, time=event.time)


def store(run: Run, rows: Iterable[RunAlarm]) -> None:
    """Stores alarms, in the transaction that stores the events. An alarm that a run sends again, because it repeats steps, replaces the old
    one and is not announced again."""
    found = {(each.signal, each.subject): each for each in rows}
    if not found:
        return
    known = set(RunAlarm.objects.filter(run=run).values_list("signal", "subject"))
    RunAlarm.objects.bulk_create(
        found.values(),
        update_conflicts=True,
        unique_fields=["run", "signal", "subject"],
        update_fields=["step", "content", "time"],
    )
    for place, each in found.items():
        if place not in known:
            announce(run.experiment.workspace_id, "run.alarm", _facts(run, each))


def _facts(run: Run, each: RunAlarm) -> dict[str, object]:
    about = {"run": run.pk, "name": str(run), "experiment": run.experiment.name, "step": each.step}
    return about | {
        name: each.content[name] for name in ("signal", "subject", "role", "since", "share", "before", "part")
    }


def described_alarms(run: Run) -> list[DescribedAlarm]:
    """All alarms of the run, newest step first, with excerpts of their responses. Three queries for any number."""
    rows = list(RunAlarm.objects.filter(run=run).order_by("-step", "signal", "subject"))
    if not rows:
        return []
    known = {each.pk: AlarmData.model_validate(each.content) for each in rows}
    places = {(each.step, place.group, place.index) for each in rows for place in known[each.pk].places}
    texts = _texts(run, places)
    graded: dict[int, list[tuple[str, str]]] = {}
    for alarm, state, problem in GradedResponse.objects.filter(alarm__in=rows).values_list(
        "alarm_id", "state", "problem"
    ):
        graded.setdefault(alarm, []).append((state, problem))
    return [_shown(each, known[each.pk], texts, graded.get(each.pk, [])) for each in rows]


def _shown(
    each: RunAlarm, data: AlarmData, texts: dict[Place, tuple[str, float | None]], graded: list[tuple[str, str]]
) -> DescribedAlarm:
    examples = []
    for place in data.places:
        text, reward = texts.get((each.step, place.group, place.index), ("", None))
        cut = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
        examples.append(AlarmExample(place.group, place.index, cut, reward))
    out = [problem for state, problem in graded if state == GradedResponse.State.LEFT_OUT]
    return DescribedAlarm(each, data, tuple(examples), len(graded) - len(out), len(out), out[0] if out else "")


def _texts(run: Run, places: set[Place]) -> dict[Place, tuple[str, float | None]]:
    if not places:
        return {}
    wanted = reduce(or_, (Q(step=step, group=group, index=index) for step, group, index in places))
    rows = Rollout.objects.filter(wanted, run=run, phase=PHASE).annotate(text=KeyTextTransform("response", "content"))
    found = rows.values_list("step", "group", "index", "text", "reward")
    return {(step, group, index): (text, reward) for step, group, index, text, reward in found}


def ask(membership: Membership, run: Run, alarm: RunAlarm) -> int:
    """Sends the responses of the alarm to people, who grade them as they grade what `people.share` draws: in the run's project, blind to
    the judge. Returns the number of new ones; a second press sends none.

    Raises Conflict if the alarm names no response.
    """
    data = AlarmData.model_validate(alarm.content)
    if not data.places:
        raise Conflict("This alarm names no response.")
    rows = [
        GradedResponse(run=run, step=alarm.step, phase=PHASE, group=each.group, index=each.index, alarm=alarm)
        for each in data.places
    ]
    with transaction.atomic():
        before = GradedResponse.objects.filter(run=run).count()
        GradedResponse.objects.bulk_create(rows, ignore_conflicts=True)
        sent = GradedResponse.objects.filter(run=run).count() - before
        if sent:
            audit.record(membership, membership.user, "run.alarm_asked", run, signal=alarm.signal, count=sent)
            enqueue("workers.runs.ask_people", run.pk)
    return sent
