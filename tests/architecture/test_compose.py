"""Every container is closed as a security team asks: no root, nothing writable, no capabilities, limits, checks, secrets as files."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from webapp.environment import Environment
from webapp.secret_files import SECRETS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docker" / "compose.yml").read_text()
COMPOSE = yaml.safe_load(TEXT)
SERVICES = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if "SECRET_KEY_FILE" in service.get("environment", {})]
SECRET_WORDS = re.compile(r"PASSWORD|SECRET|TOKEN|KEY")
OF_ONE_MACHINE = {"TOUCHSTONE_VAR", "TOUCHSTONE_SCRATCH", "HOST", "PORT", "DEBUG", "TOUCHSTONE_DEVICE"}
"""Images and commands of the services decide them."""
OF_THE_TRAINER = {"TOUCHSTONE_REWARD_FUNCTIONS", "TOUCHSTONE_SAMPLER_HOSTS"}
"""Read where runs train."""
WITH_SECRETS = {"MAIL_URL", "OTEL_EXPORTER_OTLP_HEADERS"}
"""They hold a password, as those of `SECRET_WORDS` do: a file of the operator's own adds them."""


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_can_do_nothing_that_it_need_not(name):
    service = SERVICES[name]
    user, _, group = service["user"].partition(":")
    assert int(user) > 0 and int(group) > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"] and "cap_add" not in service
    assert "no-new-privileges:true" in service["security_opt"]
    assert not {"privileged", "network_mode", "pid", "ipc", "devices"} & service.keys()
    assert service["networks"], "in none that docker makes for all"
    mounted = service.get("volumes", [])
    assert not [each for each in mounted if each.startswith(("/var/run", "/run", "/:", "~"))]


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_has_limits_and_a_check_that_ends(name):
    service = SERVICES[name]
    assert re.fullmatch(r"\$\{\w+:-\d+[mg]\}", service["mem_limit"]) and service["pids_limit"] > 0
    assert all("size=" in each for each in service["tmpfs"]), "what is in memory has an end"
    if service.get("restart") == "no":  # runs once and ends
        return
    check = service["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL") and check["timeout"] and check["retries"]


@pytest.mark.parametrize("name", SERVICES)
def test_secrets_are_files_that_exist_for_whoever_may_read_them(name):
    service = SERVICES[name]
    given = set(service.get("secrets", []))
    assert given <= COMPOSE["secrets"].keys()
    for variable, value in service.get("environment", {}).items():
        if SECRET_WORDS.search(variable) and variable != "RAY_AUTH_MODE":
            assert variable.endswith(("_FILE", "_PATH")), f"{variable} is a secret in the environment"
            assert value.removeprefix("/run/secrets/") in given, variable
    command = str(service.get("command", "")) + str(service.get("healthcheck", ""))
    assert set(re.findall(r"/run/secrets/(\w+)", command)) <= given
    assert not re.search(r"://[^/\s\"']*:[^/\s\"'@]+@", str(service)), "no password in an address"


def test_every_secret_comes_from_the_folder_that_git_and_images_leave_out():
    for secret in COMPOSE["secrets"].values():
        assert secret["file"].startswith("./secrets/")
    assert "docker/secrets/" in (ROOT / ".gitignore").read_text().split()
    readme = (ROOT / "docker" / "README.md").read_text()
    made = set(re.search(r"for name in (.*); do", readme)[1].split())
    assert made == COMPOSE["secrets"].keys()


def test_the_stores_have_no_way_out_and_no_ports():
    assert COMPOSE["networks"]["stores"]["internal"] is True
    for name in ("postgres", "redis"):
        assert SERVICES[name]["networks"] == ["stores"] and "ports" not in SERVICES[name]
    open_ones = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert set(open_ones) == {"web", "proxy"}
    assert open_ones["web"][0].startswith("${BIND:-127.0.0.1}:")


def test_the_services_name_settings_that_there_are():
    known = {name.upper() for name in Environment.model_fields} | {f"{name.upper()}_FILE" for name in SECRETS}
    for name in OURS:
        assert SERVICES[name]["environment"].keys() - known <= {"TMPDIR", "HOME"}, name
    assert set(OURS) == {"migrate", "web", "worker", "beat"}


def test_an_operator_can_set_every_other_setting_without_a_change_to_the_file():
    names = {name.upper() for name in Environment.model_fields} - OF_ONE_MACHINE - OF_THE_TRAINER - WITH_SECRETS
    asked = {name for name in names if not SECRET_WORDS.search(name)}
    for name in OURS:
        environment = SERVICES[name]["environment"]
        assert asked - environment.keys() == set(), name


def test_the_profiles_are_those_that_are_described():
    readme = (ROOT / "docker" / "README.md").read_text()
    profiles = {profile for service in SERVICES.values() for profile in service.get("profiles", [])}
    assert profiles == set(re.findall(r"^\| `(\w+)` \|", readme, re.M)) == {"cpu", "gpu", "tls"}
    [device] = SERVICES["ray-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device["capabilities"] == ["gpu"] and "deploy" not in SERVICES["ray"]
    address = re.search(r"PROXY_ADDRESS:-([\d.]+)", TEXT)[1]
    assert f"TRUSTED_PROXIES={address}" in readme


def default(value):
    """The bytes of `${NAME:-default}` if the variable is not set."""
    number, unit = re.fullmatch(r"\$\{\w+:-(\d+)([mg])b?\}", value).groups()
    return int(number) * {"m": 2**20, "g": 2**30}[unit]


OBJECT_STORE = 0.3  # the share of a node's memory that Ray takes by default


@pytest.mark.parametrize(("name", "weights"), [("ray", 500_000_000), ("ray-gpu", 3_000_000_000)])
def test_pushes_of_weights_fit_the_shared_memory_of_a_node(name, weights):
    """Weights lie in the object store, and for vLLM also in a file beside it. If they do not fit, both go through the disk."""
    service = SERVICES[name]
    memory, shared = default(service["mem_limit"]), default(service["shm_size"])
    assert 4 * weights < OBJECT_STORE * memory
    assert OBJECT_STORE * memory + 4 * weights < shared < memory
    readme = (ROOT / "docker" / "README.md").read_text()
    assert f"({shared // 2**30} of {memory // 2**30} GB)" in readme
    assert all(re.match(r"\$\{(\w+)", service[key])[1] in readme for key in ("mem_limit", "shm_size"))


def test_the_node_with_gpus_is_an_image_of_its_own_with_the_cuda_lock():
    cpu, gpu = SERVICES["ray"], SERVICES["ray-gpu"]
    assert gpu["image"] != cpu["image"] and gpu["build"]["args"] == {"GPU": "1"} and "args" not in cpu["build"]
    text = (ROOT / "docker" / "trainer.Dockerfile").read_text()
    copied = set(" ".join(re.findall(r"^COPY (.*) \./$", text, re.M)).split())
    assert "requirements-gpu.sha256" in copied
    with_gpu, without = re.search(
        r'if \[ "\$GPU" \]; then \\\n(.*?); else (.*?); fi \\\n    && rm', text, re.S
    ).groups()
    assert "requirements-gpu.sha256 > gpu.sha256" in with_gpu and "--no-deps -r gpu.sha256" in with_gpu
    assert "requirements-gpu" not in without and "scripts/digests.py" in without


def test_images_end_as_somebody_who_is_not_root():
    for file in (ROOT / "docker").glob("*.Dockerfile"):
        lines = file.read_text().splitlines()
        users = [line.split()[1] for line in lines if line.startswith("USER ")]
        based_on_ours = any(line.startswith("ARG WEB_IMAGE") for line in lines)
        assert based_on_ours or users[-1].partition(":")[0] not in ("root", "0"), file.name


PROGRAM = """
from webapp.settings import DATABASES, ENV, REDIS_URL, SECRET_KEY
print(SECRET_KEY, DATABASES["default"]["PASSWORD"], DATABASES["default"]["HOST"], REDIS_URL, ENV.metrics_token)
"""


def settings_from(tmp_path, **environment) -> subprocess.CompletedProcess[str]:
    left_out = {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "METRICS_TOKEN"}
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    env |= {"TOUCHSTONE_VAR": str(tmp_path), **environment}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=env, cwd=ROOT, capture_output=True, text=True)


def test_the_settings_are_put_together_from_the_files_that_compose_names(tmp_path):
    values = {"secret_key": "k" * 40, "postgres_password": "p/w@1", "redis_password": "r:2", "metrics_token": "m" * 24}
    for name, value in values.items():
        (tmp_path / name).write_text(value + "\n")
    given = {
        name: str(value).replace("/run/secrets/", f"{tmp_path}/")
        for name, value in SERVICES["web"]["environment"].items()
        if name.startswith(("SECRET", "DATABASE", "REDIS", "METRICS_TOKEN"))
    }
    done = settings_from(tmp_path, **given)
    assert done.stdout.split() == ["k" * 40, "p/w@1", "postgres", "redis://:r%3A2@redis:6379/0", "m" * 24], done.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"SECRET_KEY_FILE": "/nowhere/key"}, "SECRET_KEY_FILE='/nowhere/key': the file cannot be read"),
        ({"METRICS_TOKEN_FILE": os.devnull}, "METRICS_TOKEN_FILE='/dev/null': the file is empty"),
        ({"REDIS_PASSWORD": "hush"}, "REDIS_PASSWORD: Value error, REDIS_URL is not set"),
    ],
)
def test_a_secret_that_cannot_be_used_stops_the_start_without_being_shown(tmp_path, given, said):
    done = settings_from(tmp_path, **given)
    assert done.returncode == 2 and said in done.stderr
    assert "hush" not in done.stderr and "Traceback" not in done.stderr
