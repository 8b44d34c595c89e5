"""Potato (Pei et al., 2022) with its own server, started as its handbook says."""

import asyncio
import json
import re
import tempfile
from pathlib import Path

import httpx

from benchmarks.peers import PeerAway, installed
from benchmarks.peers.people import TEXT, Load, Step, served, work
from webapp.localstack.ports import free_port

TASKS = 5_000
CONFIG = f"""
annotation_task_name: bench
task_dir: .
output_annotation_dir: out
output_annotation_format: jsonl
data_files: [data.json]
item_properties: {{id_key: id, text_key: text}}
user_config: {{allow_all_users: true, users: []}}
require_password: false
max_annotations_per_user: {TASKS}
max_annotations_per_item: 2
assignment_strategy: fixed_order
annotation_schemes:
  - {{annotation_type: radio, name: better, description: "Which is better?", labels: [A, B, same]}}
alert_time_each_instance: 10000000
"""
SHOWN = re.compile(r'id="instance_id"[^>]*value="([^"]+)"')


def measure(people: int, seconds: float) -> Load:
    """Measure people at work in it. Raises PeerAway."""
    program = installed("potato", "potato-annotation") / "potato"
    with tempfile.TemporaryDirectory(prefix="ts-potato-") as name:
        folder, port = Path(name), free_port(0)
        lines = (json.dumps({"id": f"k{number}", "text": f"{number}: {TEXT}"}) for number in range(TASKS))
        (folder / "data.json").write_text("\n".join(lines))
        (folder / "config.yaml").write_text(CONFIG)
        with served([str(program), "start", "config.yaml", "-p", str(port)], folder, port) as address:
            return asyncio.run(work(address, people, seconds, enter))


async def enter(client: httpx.AsyncClient, number: int) -> Step:
    """The requests of the page between two tasks: it saves the answer, says that it continues, and then loads itself again."""
    await client.post("/auth", data={"email": f"person{number}", "pass": "x", "action": "login"})
    shown = shown_on(await client.get("/annotate"))

    async def step() -> None:
        nonlocal shown
        answer = {"instance_id": shown, "annotations": {"better:A": "true"}, "span_annotations": []}
        (await client.post("/updateinstance", json=answer)).raise_for_status()
        (await client.post("/annotate", json={"action": "next_instance", "instance_id": shown})).raise_for_status()
        shown = shown_on(await client.get("/annotate"))

    return step


def shown_on(page: httpx.Response) -> str:
    """The id of the task on the page. Raises PeerAway if there is none."""
    page.raise_for_status()
    found = SHOWN.search(page.text)
    if found is None:
        raise PeerAway("its page shows no task")
    return found[1]
