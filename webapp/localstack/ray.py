"""A Ray head of our own, driven only through its command line and its REST API: Ray is never imported here."""

import os
import secrets
import shutil
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from django.conf import settings

from webapp.machine.places import short_dir

from .ports import ReservedPort, free_ports
from .processes import Command

OBJECT_STORE_BYTES = 200_000_000  # runs keep their tensors to themselves; Ray refuses less than 75 MB
USUAL_DASHBOARD_PORT = 8265
SWITCHES = ("--disable-usage-stats", "--no-monitor")  # the monitor starts and ends machines of a cloud


class RayHead:
    """One node, reachable from this machine only, behind a token that is made once and kept under `var`."""

    def __init__(self, var: Path) -> None:
        self.token_file = var / "ray_token"
        self.temp = short_dir(var) / "ray"
        self._dashboard = ReservedPort(USUAL_DASHBOARD_PORT)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._dashboard.number}"

    def prepare(self) -> None:
        """Removes old sessions: they hold only sockets and logs, and our lock shows that nobody uses them."""
        self.token_file.parent.mkdir(parents=True, exist_ok=True)
        if not self.token_file.exists():
            with open(os.open(self.token_file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
                file.write(secrets.token_hex(32))
        shutil.rmtree(self.temp, ignore_errors=True)
        self._dashboard.look_again()

    def command(self) -> Command:
        gcs, agent, agent_grpc, metrics, client, env_agent = free_ports(6)
        options = {
            "node-ip-address": "127.0.0.1",
            "port": gcs,
            "dashboard-host": "127.0.0.1",
            "dashboard-port": self._dashboard.number,
            "dashboard-agent-listen-port": agent,
            "dashboard-agent-grpc-port": agent_grpc,
            "metrics-export-port": metrics,
            "ray-client-server-port": client,
            "runtime-env-agent-port": env_agent,
            "num-cpus": os.cpu_count() or 1,
            "object-store-memory": OBJECT_STORE_BYTES,
            "temp-dir": self.temp,
            "include-dashboard": "true",
            "include-log-monitor": "false",  # it sends what workers print to a driver's output; ours ask for none of it
        }
        args = [f"--{name}={value}" for name, value in options.items()]
        return Command(
            [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *SWITCHES, *args],
            without=settings.SERVER_VARIABLES,  # its jobs, which run people's own functions, inherit what it has
            env={
                "RAY_AUTH_MODE": "token",
                "RAY_AUTH_TOKEN_PATH": str(self.token_file),
                # Ray takes 127.0.0.1 for "find an address that others can reach", except where it was told (a switch
                # made for other systems) that there are no others; then its ports listen on the loopback address only
                "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
                "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
                # on a busy machine these took longer than the 30 and 60 s that Ray gives them, and it started again and again;
                # how long is too long, the supervisor knows
                "RAY_gcs_server_port_wait_time_s": "600",
                "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "600",
                # a job that waits for a GPU waits as long as it takes; by default Ray fails it after 15 minutes, and at 0 at once
                "RAY_JOB_START_TIMEOUT_SECONDS": "inf",
                # by default the first job also starts an idle process for each core, which no job of ours uses: 84 MB each
                "RAY_prestart_worker_first_driver": "0",
                "RAY_ROTATION_MAX_BYTES": "10000000",
                "RAY_ROTATION_BACKUP_COUNT": "1",
            },
        )

    def ready(self) -> bool:
        found = answers(self.address, self.token_file)
        self._dashboard.was_used |= found
        return found


def answers(address: str, token_file: Path | None) -> bool:
    """Whether the job API at `address` takes our token."""
    headers = {}
    try:
        if token_file and token_file.exists():
            headers["Authorization"] = f"Bearer {token_file.read_text().strip()}"
        # the address comes from settings, which only take http and https
        with urlopen(Request(f"{address}/api/jobs/", headers=headers), timeout=2) as response:  # noqa: S310
            return bool(response.status == 200)
    except (URLError, OSError, ValueError):
        return False
