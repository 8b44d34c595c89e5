"""Migrations, environment, containers and secrets agree with the code."""

import re
import subprocess
from pathlib import Path

import pytest
from django.core.management import call_command

from webapp.environment import Environment, pass_on

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.django_db
def test_models_and_migrations_agree():
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def test_migrations_import_no_app_code():
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "webapp").rglob("migrations/0*.py")
        if re.search(r"^(from|import) (webapp|workers|trainer)\b", path.read_text(), re.MULTILINE)
    ]
    assert found == []


def test_the_example_lists_every_variable_with_its_description():
    lines = (ROOT / ".env.example").read_text().splitlines()
    listed = {
        line.removeprefix("#").partition("=")[0]: lines[number - 1].removeprefix("# ")
        for number, line in enumerate(lines)
        if re.match(r"#?[A-Z_]+=", line)
    }
    assert listed == {name.upper(): field.description for name, field in Environment.model_fields.items()}


GIVEN_TO_JOBS = {
    "TOUCHSTONE_URL",
    "TOUCHSTONE_RUN_ID",
    "TOUCHSTONE_RUN_TOKEN",
    "TOUCHSTONE_CARRIES",
    "TOUCHSTONE_WEIGHTS_JOB",
    "TOUCHSTONE_REQUEST_ID",
}
"""Variables that we set for the jobs that we start. Nobody else has to set them."""


def test_every_variable_of_ours_that_any_program_reads_stands_in_the_example():
    sources = [path for folder in ("webapp", "trainer", "workers") for path in (ROOT / folder).rglob("*.py")]
    read = {name for path in sources for name in re.findall(r"""["'](TOUCHSTONE_[A-Z_]+)["']""", path.read_text())}
    listed = set(re.findall(r"^#?(TOUCHSTONE_[A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert "TOUCHSTONE_REWARD_FUNCTIONS" in read
    assert read - listed == GIVEN_TO_JOBS


def test_what_the_trainer_reads_is_passed_on_from_a_settings_file(tmp_path):
    (tmp_path / ".env").write_text("TOUCHSTONE_REWARD_FUNCTIONS=polite,brief\n")
    environ: dict[str, str] = {}
    pass_on(Environment(_env_file=tmp_path / ".env"), environ)
    assert environ == {"TOUCHSTONE_REWARD_FUNCTIONS": "polite,brief"}


def test_a_bad_value_stops_start_up_with_its_name(tmp_path):
    import os
    import sys

    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**os.environ, "PORT": "eighty", "TOUCHSTONE_VAR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "PORT='eighty'" in done.stderr and "Traceback" not in done.stderr


def test_beat_starts_every_round_of_upkeep_and_only_tasks_that_exist(eager, settings):
    known = {name for name in eager.tasks if name.startswith("workers.")}
    started = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    rounds = {
        "annotation.expire_leases",
        "annotation.make_waiting",
        "audit.seal",
        "backups.round",
        "endpoints.requeue_lost",
        "imports.delete_rest",
        "notices.post",
        "notices.trim",
        "personal_data.look",
        "questions.forget_old",
        "review.take_up_lost",
        "reports.look_again",
        "runs.delete_checkpoints",
        "runs.index_words",
        "runs.keep_means",
        "sweeps.watch",
        "upkeep.clear_sessions",
        "upkeep.erase_deleted_runs",
        "upkeep.forget_fetched",
        "upkeep.hash_former_codes",
        "upkeep.take_up_lost",
        "upkeep.watch_runs",
        "webhooks.take_up",
        "webhooks.trim",
        "weights.watch",
    }
    assert started == {f"workers.{name}" for name in rounds} <= known


def test_container_files_name_files_that_exist():
    for dockerfile in (ROOT / "docker").glob("*.Dockerfile"):
        for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile.read_text(), re.MULTILINE):
            for source in line.split()[:-1]:
                assert (ROOT / source).exists(), f"{dockerfile.name}: {source}"


def test_the_trainer_only_list_names_pinned_packages():
    pinned = {line.partition("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines()}
    listed = set((ROOT / "docker" / "trainer-only.txt").read_text().split())
    assert listed <= pinned


SECRET = re.compile(r"((?<!\w)ts_[\w-]{40,}|-----BEGIN [A-Z ]*PRIVATE KEY-----|AKIA[0-9A-Z]{16}|hf_[A-Za-z0-9]{30,})")


def test_no_secret_is_committed():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    found = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and path.stat().st_size < 1_000_000 and SECRET.search(path.read_text(errors="ignore")):
            found.append(name)
    assert found == []
