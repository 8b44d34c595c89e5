"""Fills a database with the code of an earlier commit and writes it as SQL, which `test_upgrade.py` upgrades.

In a checkout of that commit: `python .../tests/upgrade/make.py FILE.sql`. It starts a separate database, migrates it with that commit's
migrations and calls that commit's services. Add one such file with each release.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path.cwd()
PROMPTS, PAIRS, STEPS = 8, 6, 4
NOISE = re.compile(r"^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*|)$\n", re.MULTILINE)
SPEC = {"kind": "pairwise"}
RECORDED = [("A", "A", "B"), ("B", "B", "A"), ("A", "A", "A"), ("B", None, "A")]  # (label, given, swapped)


def main(target: Path) -> None:
    sys.path.insert(0, str(HERE))
    os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
    folder = Path(tempfile.mkdtemp(prefix="ts-dump-"))
    folder.chmod(0o711)
    os.environ["TOUCHSTONE_VAR"] = str(folder / "var")
    from webapp.localstack.postgres import Postgres

    server = Postgres(folder, durable=False)
    server.start()
    try:
        os.environ["DATABASE_URL"] = server.url("touchstone")
        subprocess.run([sys.executable, "manage.py", "migrate", "--noinput", "-v", "0"], check=True)
        import django

        django.setup()
        fill(folder)
        write(server, target)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def write(server, target: Path) -> None:
    program = [str(server.install / "bin" / "pg_dump"), "--inserts", "--rows-per-insert=200", "--no-owner"]
    program += ["--no-privileges", "--no-comments", "-h", str(server.socket_dir), "-U", server.user, "touchstone"]
    text = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    target.write_text(NOISE.sub("", text))


def fill(folder: Path) -> None:
    from django.conf import settings

    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    settings.VAR = folder / "var"
    from webapp.celery import app

    app.send_task = lambda *args, **kwargs: None  # without a broker, nothing is queued
    owner, annotator = people()
    data(owner, folder)
    work(owner, annotator)
    judge(owner)
    run(owner, folder)
    evaluation(owner)


def people():
    from webapp.accounts.members.services import invite
    from webapp.accounts.models import Membership, Role
    from webapp.accounts.sign_in.services import get_or_create_user
    from webapp.accounts.tokens.services import create_token
    from webapp.accounts.workspaces.services import create_workspace

    owner = create_workspace("Lab", get_or_create_user("ada@example.org", name="Ada"))
    user = get_or_create_user("anna@example.org", name="Anna")
    annotator = Membership.objects.create(user=user, workspace=owner.workspace, role=Role.ANNOTATOR)
    create_token(owner, "script")
    invite(owner, "rosa@example.org", Role.RESEARCHER)
    return owner, annotator


def data(owner, folder: Path) -> None:
    from webapp.localstack.management.commands import demo

    short = folder / "demo"
    shutil.copytree(HERE / "demo", short)
    for name, lines in (("prompts.jsonl", PROMPTS), ("preferences.jsonl", PAIRS)):
        text = (short / name).read_text().splitlines()[:lines]
        (short / name).write_text("\n".join(text) + "\n")
    demo.FOLDER, demo.GOLD = short, 1
    for name, file in demo.DATASETS.items():
        demo.import_dataset(owner, name, short / file)
    demo.open_projects(owner)


def work(owner, annotator) -> None:
    """Both people answer every task except the last of each project. The pairs are published twice."""
    from webapp.annotation.agreement import refresh
    from webapp.annotation.models import Project
    from webapp.annotation.people import services as participants
    from webapp.annotation.publishing import services as publish
    from webapp.annotation.work import queue

    for project in Project.objects.order_by("id"):
        participants.add_participant(owner, project, annotator.user)
        for person in (owner, annotator):
            for number in range(PAIRS - 1):
                for seat in queue.claim(person, project)[:1]:
                    queue.submit(person, seat, content(project.kind, number, person is owner))
        refresh.bring_up_to_date(project)
        if project.kind == "pairwise":
            publish.publish(owner, project, publish.Choice(what="answers"))
            publish.publish(owner, project, publish.Choice(what="answers", minimum=0.5))


def content(kind: str, number: int, first: bool) -> dict:
    if kind == "pairwise":
        return {"verdict": "compared", "strength": (-2, -1, 0, 1, 2)[number % 5] or (1 if first else -1)}
    criteria = [{"id": "c1", "text": "Answers what was asked", "points": 5}]
    criteria += [{"id": "c2", "text": f"Is at most {40 + number} words long", "points": 2}] if first else []
    return {"rubric": {"criteria": criteria}}


def judge(owner) -> None:
    from webapp.inference.endpoints import services as endpoints
    from webapp.judging.judges import services as judges

    endpoint = endpoints.create_endpoint(owner, "recorded", name="Elsewhere")
    judges.create_judge(owner, name="Strict", spec=SPEC, endpoint=endpoint)


def run(owner, folder: Path) -> None:
    from tests.e2e.seed import seed_run
    from webapp.experiments.launch import services as launch
    from webapp.experiments.launch.checks import DatasetChoice
    from webapp.experiments.models import Rollout
    from webapp.inference.models import RegisteredModel

    RegisteredModel.objects.create(
        workspace=owner.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )
    choice = DatasetChoice(name="Demo prompts")
    made = launch.launch(owner, recipe="policy", config={"steps": STEPS}, dataset=choice, name="First")
    seed_run(made, steps=STEPS, state="finished")
    Rollout.objects.filter(run=made).exclude(step=STEPS, index=0).delete()


def evaluation(owner) -> None:
    from webapp.evaluation.launch import services
    from webapp.evaluation.recordings import services as recordings
    from webapp.evaluation.work import running

    rows = [
        {"judge": "one", "pair": f"p{n}", "group": "g", "label": label, "given": given, "swapped": swapped}
        for n, (label, given, swapped) in enumerate(RECORDED)
    ]
    file = "\n".join(json.dumps(row) for row in rows).encode()
    recording = recordings.store_recording(owner, "verdicts.jsonl", file)
    made = services.create(owner, recipe="judge_audit", config={}, recording=recording, dataset=None)
    running.run(made.pk)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
