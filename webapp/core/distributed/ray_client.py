"""Ray's job REST API, as far as runs need it. Plain HTTP: neither the web side nor a worker ever imports Ray."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from ssl import SSLContext
from typing import Any, Literal

import httpx
from django.conf import settings

from trainer.contracts.plurals import noun
from webapp.machine.lock import is_held
from webapp.machine.places import facts

JobStatus = Literal["PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED", "UNKNOWN"]
ENDED: frozenset[str] = frozenset({"STOPPED", "SUCCEEDED", "FAILED", "UNKNOWN"})
TIMEOUT = httpx.Timeout(20.0, connect=3.0)
LOG_TAIL_BYTES = 64_000
LONGEST_COMMAND = 300  # of a listed job
STARTING = timedelta(minutes=2)  # a head on a busy machine; longer than that something is wrong


class RayAway(Exception):
    """Ray does not answer, or not yet: a later try may succeed."""


class RayRefused(Exception):
    """Ray answered that the request cannot be carried out: another try does not help."""


@dataclass(frozen=True)
class RayJob:
    """`UNKNOWN`: Ray has no such job, for instance because it was restarted since. `message` is Ray's own words."""

    status: JobStatus
    message: str = ""
    exit_code: int | None = None

    @property
    def was_killed(self) -> bool:
        """Whether signal 9 ended it, as a shell or Python's subprocess puts it."""
        return self.exit_code in (-9, 137)

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED


@dataclass(frozen=True)
class ListedJob:
    """A job of Ray's own list that is not over. `name` is the id under which it was submitted; a program that joined the cluster by itself
    has the number that Ray gave it."""

    name: str
    status: JobStatus
    command: str
    started: str


@dataclass(frozen=True)
class JobResources:
    """The resources that Ray sets aside for a job."""

    cpus: float = 0
    gpus: float = 0
    memory_bytes: int = 0

    def __add__(self, other: "JobResources") -> "JobResources":
        return JobResources(self.cpus + other.cpus, self.gpus + other.gpus, self.memory_bytes + other.memory_bytes)

    @property
    def words(self) -> str:
        """2 CPUs, 1 GPU, 8 GB of memory; empty if it asks for nothing."""
        parts = [_several(self.cpus, "CPUs"), _several(self.gpus, "GPUs")]
        parts.append(f"{gigabytes(self.memory_bytes)} GB of memory" if self.memory_bytes else "")
        return ", ".join(filter(None, parts))


def _several(number: float, plural: str) -> str:
    return f"{number:g} {noun(1, plural) if number == 1 else plural}" if number else ""


def gigabytes(size: float) -> str:
    """Bytes as gigabytes, to a tenth."""
    return f"{round(size / 1e9, 1):g}"


class RayClient:
    """One cluster's job API at `address`; `token` is sent if the cluster asks for one. `silent` says why it may not answer."""

    def __init__(self, address: str, token: str = "", silent: Callable[[], str] = str) -> None:
        self._silent = silent
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # proxies from the environment have no business between us and our own cluster
        self._http = httpx.Client(
            base_url=address, headers=headers, timeout=TIMEOUT, trust_env=False, verify=_trusted()
        )

    def version(self) -> str:
        """The version of Ray. Raises RayAway or RayRefused."""
        try:
            return str(self._call("GET", "/api/version").json().get("ray_version", "unknown"))
        except (_Missing, ValueError) as error:
            raise RayAway("A program answers there, but it is not Ray") from error

    def submit(self, job_id: str, entrypoint: str, env: dict[str, str], wanted: JobResources | None = None) -> None:
        """Starts a job under an id of our choosing. Submitting the same id again changes nothing.

        Without `wanted` it reserves no CPU: a run that waits for CPUs nobody else needs would never start on a small
        machine. With it Ray waits until a node has as much free. Raises RayAway or RayRefused.
        """
        wanted = wanted or JobResources()
        body = {
            "entrypoint": entrypoint,
            "submission_id": job_id,
            "runtime_env": {"env_vars": env},
            "entrypoint_num_cpus": wanted.cpus,
            **({"entrypoint_num_gpus": wanted.gpus} if wanted.gpus else {}),
            **({"entrypoint_memory": wanted.memory_bytes} if wanted.memory_bytes else {}),
        }
        try:
            self._call("POST", "/api/jobs/", json=body)
        except (RayAway, RayRefused):
            # an answer may have got lost on its way, and Ray refuses an id that it already has
            if self.job(job_id).status == "UNKNOWN":
                raise

    def job(self, job_id: str) -> RayJob:
        """Raises RayAway if Ray does not answer."""
        try:
            found = self._call("GET", f"/api/jobs/{job_id}").json()
        except _Missing:
            return RayJob("UNKNOWN", "Ray does not know this job")
        return RayJob(found["status"], found.get("message") or "", found.get("driver_exit_code"))

    def stop(self, job_id: str) -> None:
        """Asks Ray to end the job: SIGTERM, and SIGKILL a few seconds later. A job that Ray does not know is not an error."""
        try:
            self._call("POST", f"/api/jobs/{job_id}/stop")
        except _Missing:
            return

    def last_lines(self, job_id: str, count: int = 20) -> list[str]:
        """The newest lines the process printed; none if Ray does not know the job."""
        try:
            text = self._call("GET", f"/api/jobs/{job_id}/logs").json().get("logs") or ""
        except _Missing:
            return []
        lines = [line.rstrip() for line in text[-LOG_TAIL_BYTES:].splitlines()]
        return [line for line in lines if line][-count:]

    def unfinished(self) -> list[ListedJob]:
        """All jobs that are not over, also those of other programs. Raises RayAway or RayRefused."""
        try:
            found = self._call("GET", "/api/jobs/").json()
            return [_listed(each) for each in found if each["status"] not in ENDED]
        except (_Missing, ValueError, KeyError, TypeError) as error:
            raise RayAway("Ray does not say which jobs it has") from error

    def nodes(self) -> list[Any]:
        """Ray's own summary of every machine. Raises RayAway or RayRefused."""
        try:
            found = self._call("GET", "/nodes?view=summary").json()["data"]["summary"]
        except (_Missing, ValueError, KeyError, TypeError) as error:
            raise RayAway("Ray does not say which machines it has") from error
        if not isinstance(found, list):
            raise RayAway("Ray does not say which machines it has")
        return found

    def _call(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **kwargs)
        except httpx.HTTPError as error:
            raise RayAway(self._silent() or f"Ray does not answer at {self._http.base_url}: {error}") from error
        if response.status_code == 404:
            raise _Missing
        if response.status_code >= 500:
            raise RayAway(f"Ray answered {response.status_code}: {_last_line(response)}")
        if response.status_code >= 400:
            raise RayRefused(f"Ray answered {response.status_code}: {_last_line(response)}")
        return response


def _listed(told: dict[str, Any]) -> ListedJob:
    began = told.get("start_time")
    started = datetime.fromtimestamp(began / 1000, UTC).isoformat() if began else ""
    name = str(told.get("submission_id") or told["job_id"])
    return ListedJob(name, told["status"], str(told.get("entrypoint") or "")[:LONGEST_COMMAND], started)


@cache
def _trusted() -> SSLContext:
    """The authorities that every cluster's certificate is looked up in: to read them takes longer than most questions do."""
    return httpx.create_ssl_context(trust_env=False)


class _Missing(Exception):
    """404."""


def _last_line(response: httpx.Response) -> str:
    """The last line of one of Ray's errors, which are whole tracebacks: it has the reason."""
    lines = response.text.strip().splitlines()
    return lines[-1][:300] if lines else "nothing"


def client() -> RayClient:
    """The cluster of the settings, or the local head where it says it listens now: a restart may move it.

    Raises RayAway while there is neither, or its token cannot be read.
    """
    address, token_file = settings.ENV.ray_address, settings.ENV.ray_token_file
    local = not address
    if not address:
        found = facts(settings.VAR, "ray")
        if "address" not in found:
            raise RayAway(local_head())
        address = found["address"]
        token_file = Path(found["token_file"]) if found.get("token_file") else None
    try:
        token = token_file.read_text().strip() if token_file else ""
    except OSError as error:
        raise RayAway(f"Ray's token cannot be read: {error}") from error
    return RayClient(address, token, local_head if local else str)


def local_head() -> str:
    """The state of a local head that does not answer: never started, stopped, starting, or silent."""
    found, up = facts(settings.VAR, "ray"), is_held(settings.VAR)
    if "address" not in found:
        if up:
            return "Ray has not been started yet; it starts after the other services"
        return "Ray was never started on this machine: start it with manage.py up, or name a cluster with RAY_ADDRESS"
    if "since" not in found:
        return "Ray does not answer" if up else "Ray is stopped"
    since = datetime.fromisoformat(found["since"])
    told = f"{since:%Y-%m-%d %H:%M:%S} UTC"
    if not up:
        return f"Ray is stopped; it was last started at {told}"
    if abs(datetime.now(UTC) - since) < STARTING:
        return f"Ray has been starting since {told}"
    return f"Ray was started at {told}, but it does not answer"
