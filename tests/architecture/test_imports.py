"""The imports that modules may have, by the contracts and by the modules that the processes really load."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_import_contracts_hold():
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


LOAD = """
import json
import sys
import webapp.asgi
import importlib
from webapp.celery import app
from django.core.management import get_commands, load_command_class
for name in app.conf.include:
    importlib.import_module(name)
for name, owner in get_commands().items():
    if str(owner).startswith("webapp."):
        load_command_class(owner, name)
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def modules() -> set[str]:
    """The modules that web and worker processes load, commands included."""
    return set(json.loads(loaded(LOAD)))


def test_web_and_worker_processes_load_no_machine_learning(modules):
    assert "webapp.asgi" in modules and "workers.upkeep" in modules
    heavy = {"torch", "ray", "vllm", "transformers", "trl", "peft"}
    assert {name.partition(".")[0] for name in modules} & heavy == set()


def test_web_and_worker_processes_load_what_is_heavy_only_when_they_need_it(modules):
    late = {"scipy.optimize", "scipy.stats", "scipy.sparse", "datasketch", "sacrebleu", "scim2_models"}
    assert modules & late == set()


GARBAGE = """
import atexit, gc
atexit.register(lambda: print(gc.get_threshold()[0], gc.get_freeze_count() > 0))  # what comes first is called last
import webapp
"""


def test_processes_look_for_garbage_rarely_and_not_as_they_end():
    assert loaded(GARBAGE) == "10000 True"
    assert loaded(GARBAGE.replace("import webapp", "from trainer.process import settle; settle()")) == "10000 True"


def loaded(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_config_package_loads_without_torch_or_django():
    code = "import sys, trainer.config, trainer.contracts; print({'torch', 'django'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
