"""Our jobs with Ray, those of runs and those that need weights: handed over once, asked about, ended.

Nothing here trusts that a task is delivered once or that a worker survives it. A row in `starting` without `ray_job_id` waits for
Ray, and `next_try_at` says when the next try is due. Each step is a conditional update of that row and attempt: so one of several
workers submits the job, and what a lost worker leaves behind is queued again.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from django.db import transaction
from django.db.models import F, Model, Q, QuerySet
from django.utils import timezone

from trainer import tracing

from ..network.addresses import internal_url
from ..problems import Problem
from ..storage import artifact_store
from ..storage.artifact_store import StoreAway
from ..tasks import AHEAD, enqueue, written_ahead
from . import ray_client, reconciling
from .ray_client import JobResources, RayAway, RayClient, RayJob, RayRefused

if TYPE_CHECKING:  # the lowest app names the types of the one above it, and imports nothing of it
    from webapp.accounts.models import Workspace

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)  # how long one try to submit may take before another worker may try
LOST = timedelta(seconds=20)  # a launch this long overdue has lost its task
NOT_ASKED = "was not asked"
LONGEST_WAIT_S = 30
SLACK = timedelta(milliseconds=500)  # a countdown may end a moment before the time it was made for


class RayRow(Protocol):
    """The fields that the row of a job on Ray has, besides `next_try_at`, `heartbeat_at` and `state_at`."""

    pk: Any
    attempt: Any
    state: Any
    tries: Any
    ray_job_id: Any


Row = TypeVar("Row", bound=RayRow)


@dataclass(frozen=True)
class Entrypoint:
    """The command that Ray starts."""

    command: str
    environment: Mapping[str, str]
    wanted: JobResources


@dataclass(frozen=True)
class RayJobKind(Generic[Row]):
    """One kind of job. `prefix` begins the names of its jobs in Ray; `task` hands one over by its id; `reason` is the column that
    says why a job waits; a job in a state of `alive` is with Ray or about to be; `tell` brings a row up to date and tells open pages;
    `repair` is the action of the audit log that says what the reconciler mended, in the workspace that `where` names."""

    rows: QuerySet[Any]
    prefix: str
    task: str
    reason: str
    alive: Collection[str]
    tell: Callable[[Row], object]
    repair: str
    where: "Callable[[Row], Workspace]"
    busy: Callable[[str], bool] = lambda name: False
    """Whether the job of this name continues for other rows than the one that gave it its name."""

    def name(self, job: Row, attempt: int | None = None) -> str:
        carried: str = getattr(job, "carried_by", "")
        if carried and attempt is None:  # another one's job has it in its process
            return carried
        return f"{self.prefix}-{job.pk}-{attempt or job.attempt}"

    def attempt(self, job: Row, **conditions: object) -> QuerySet[Any]:
        """The row, for an UPDATE, while it is in this attempt and meets the conditions."""
        return self.rows.filter(pk=job.pk, attempt=job.attempt, **conditions)

    def claim_again(self, job: Row) -> bool:
        """Claims a job whose first try has failed, or whose worker was lost: True for one of the workers that hold a task for it."""
        due = self.attempt(job, state="starting", ray_job_id="", next_try_at__lte=timezone.now() + SLACK)
        return bool(due.update(next_try_at=timezone.now() + LEASE))

    def hold(self, job: Row) -> None:
        """Renews the claim, because copying a large model takes longer than a lease."""
        self.attempt(job, state="starting", ray_job_id="").update(next_try_at=timezone.now() + LEASE)

    def hand_over(
        self, job: Row, copy: Callable[[], object], order: Callable[[], Entrypoint], fail: Callable[[str], object]
    ) -> float | None:
        """Submits a job that was claimed. Returns the seconds after which to try again, or None.

        `copy` brings what the process needs to the artifact store, if there is one; `fail` ends the job with a reason.
        """
        try:
            if artifact_store.is_configured():
                copy()
            client = ray_client.client()
            if waiting_for := self._unfinished_attempt(client, job):
                return self.try_later(job, f"Attempt {waiting_for} is still ending")
            told = order()
            environment = {"TOUCHSTONE_URL": internal_url(), **told.environment, **tracing.job_environment()}
            client.submit(self.name(job), told.command, environment, told.wanted)
        except (RayAway, StoreAway) as error:
            return self.try_later(job, str(error).rstrip("."))
        except RayRefused as error:
            fail(f"Ray refused the job. {error}")
            return None
        except (Problem, OSError) as error:
            fail(f"Its files cannot be copied to the artifact store. {error}")
            return None
        self.submitted(client, job)
        return None

    def _unfinished_attempt(self, client: RayClient, job: Row) -> int | None:
        """An earlier attempt whose process may still write; it is told to end."""
        for attempt in range(job.attempt - 1, 0, -1):
            if not self.busy(self.name(job, attempt)) and not client.job(self.name(job, attempt)).has_ended:
                client.stop(self.name(job, attempt))
                return attempt
        return None

    def try_later(self, job: Row, why: str) -> float:
        delay: float = min(2.0**job.tries, LONGEST_WAIT_S)
        with transaction.atomic():
            waits = self.attempt(job, state="starting").update(
                tries=F("tries") + 1,
                next_try_at=timezone.now() + timedelta(seconds=delay),
                **{self.reason: f"{why}. It is tried again until it works."},
            )
            if waits:
                self.tell(job)
        return delay

    def submitted(self, client: RayClient, job: Row) -> None:
        """Notes the job; if it was ended meanwhile, and perhaps deleted, the process that nobody wants any more is stopped."""
        name = self.name(job)
        with transaction.atomic():
            noted = self.attempt(job, state__in=self.alive).update(ray_job_id=name, next_try_at=None)
            # its first word may have been faster than we: then the reason is no longer ours to clear
            self.attempt(job, state="starting").update(**{self.reason: ""})
            if noted:
                self.tell(job)
        logger.info("Ray has %s", name)
        if not noted:
            client.stop(name)

    def repaired(self, job: Row, *, believed: str, ray: str, done: str, attempt: int | None = None) -> None:
        """Writes down what the reconciler has mended, in the transaction of the repair. `attempt`: that which it found, if the job has
        another one by now."""
        told = {"believed": believed, "ray": ray, "done": done}
        reconciling.record(self.where(job), self.repair, cast(Model, job), attempt=attempt or int(job.attempt), **told)

    def noted_late(self, job: Row) -> bool:
        """Records for a running job that Ray took it, if the worker that should have recorded that died before. False: the job has another
        attempt by now."""
        job.ray_job_id = self.name(job)
        with transaction.atomic():
            rows = self.attempt(job, state__in=self.alive, ray_job_id="")
            noted = rows.update(ray_job_id=job.ray_job_id, next_try_at=None)
            if noted:
                believed = f"{job.state}, not handed over"
                done = f"its process speaks, so it was noted that Ray has it as {job.ray_job_id}"
                self.repaired(job, believed=believed, ray=NOT_ASKED, done=done)
        return bool(noted)

    def tidy(self, now: datetime) -> None:
        """Upkeep: queues again the launches whose task was lost, and mends times that lie ahead."""
        self._set_clocks_right(now)
        overdue = Q(next_try_at__lt=now - LOST) | Q(next_try_at__gt=now + LEASE + AHEAD)
        lost = self.rows.filter(overdue, state__in=("queued", "starting"), ray_job_id="")
        for job in lost.all():
            with transaction.atomic():
                if lost.filter(pk=job.pk).update(next_try_at=now):
                    enqueue(self.task, job.pk)
                    believed = f"{job.state}, a worker is about to hand it over"
                    done = "no worker did so in time, so it was queued for one again"
                    self.repaired(job, believed=believed, ray=NOT_ASKED, done=done)

    def _set_clocks_right(self, now: datetime) -> None:
        """Sets times to now that were written before the clock of the server went back. Else silence would not count until they have passed."""
        ahead = self.rows.filter(written_ahead("heartbeat_at") | written_ahead("state_at"), state__in=self.alive)
        for job in ahead.all():
            with transaction.atomic():
                same = self.attempt(job, state__in=self.alive)
                mended = [
                    same.filter(written_ahead(name)).update(**{name: now}) for name in ("heartbeat_at", "state_at")
                ]
                if any(mended):
                    believed = f"{job.state}, with a time that lies ahead"
                    done = "the clock of the server was set back, so the time of its last word or change was set to now"
                    self.repaired(job, believed=believed, ray=NOT_ASKED, done=done)


def ask(job: RayRow) -> tuple[RayClient | None, RayJob | None]:
    """Ray's answer about the job: None if it does not answer, or refuses (another cluster, another token), for the job must end
    all the same."""
    client = None
    try:
        client = ray_client.client()
        found = client.job(job.ray_job_id)
        reconciling.record_answer()
        return client, found
    except (RayAway, RayRefused) as error:
        reconciling.not_heard(str(error))
        logger.warning("cannot ask for job %s: %s", job.ray_job_id, error)
        return client, None


def job_text(found: RayJob | None) -> str:
    """The answer that `ask` got, for the reconciler's page."""
    if found is None:
        return "did not answer"
    if found.status == "UNKNOWN":
        return "does not know the job"
    code = "" if found.exit_code is None else f", exit code {found.exit_code}"
    return f"{found.status.lower()}{code}"


def death(found: RayJob) -> str:
    """The reason why the process of a job ended without a last message."""
    if found.status == "UNKNOWN":
        return "Its process is gone: Ray does not know the job any more. Perhaps Touchstone or Ray was restarted"
    end = f"Its process ended without a message (Ray: {found.status.lower()})"
    return f"{end}: it was killed; the system does this when memory runs out" if found.was_killed else end


def kill(client: RayClient | None, job: RayRow) -> None:
    if client:
        try:
            client.stop(job.ray_job_id)
        except (RayAway, RayRefused) as error:
            logger.warning("cannot stop job %s: %s", job.ray_job_id, error)


def last_lines(client: RayClient | None, job: RayRow) -> list[str]:
    """The last output of the process, as the database can store it."""
    try:
        return [line.replace("\0", "␀") for line in client.last_lines(job.ray_job_id)] if client else []
    except (RayAway, RayRefused) as error:
        return [f"(its log cannot be read: {error})"]
