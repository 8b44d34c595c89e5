"""The messages of the MCP server: its tools are the operations of the API, with the same roles, areas and audit log."""

import json

import pytest
from django.test import Client

from tests.team import ApiClient, browser
from tests.webapp.security.test_scanning import BAD, clamd  # noqa: F401 - a fixture
from webapp.accounts.tokens.services import create_token
from webapp.agents.operations import TOOLS
from webapp.agents.tools import tools
from webapp.core.models import AuditEntry

pytestmark = pytest.mark.django_db


class Speaking:
    def __init__(self, membership, **rights) -> None:
        secret = create_token(membership, "agent", rights=rights or None)[1]
        self.client = Client(headers={"authorization": f"Bearer {secret}"})

    def say(self, method: str, **params):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.client.post("/mcp", message, content_type="application/json")

    def call(self, tool: str, **arguments) -> tuple[bool, dict]:
        """(whether it was carried out, the answer)."""
        result = self.say("tools/call", name=tool, arguments=arguments).json()["result"]
        return not result["isError"], json.loads(result["content"][0]["text"])


@pytest.fixture
def agent(team) -> Speaking:
    return Speaking(team.researcher)


def test_a_session_begins_lists_and_ends(agent):
    began = agent.say("initialize", protocolVersion="2025-03-26", capabilities={}).json()["result"]
    assert began["protocolVersion"] == "2025-03-26" and began["serverInfo"]["name"] == "touchstone"
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert agent.client.post("/mcp", note, content_type="application/json").status_code == 202
    assert agent.say("ping").json()["result"] == {}
    listed = agent.say("tools/list").json()["result"]["tools"]
    assert [each["name"] for each in listed] == list(TOOLS)
    launching = next(each for each in listed if each["name"] == "launch_run")
    assert launching["inputSchema"]["required"] == ["body"] and "LaunchIn" in launching["inputSchema"]["$defs"]
    assert "components" not in json.dumps(listed)


PLAIN = [
    name for name, (method, path) in TOOLS.items() if method == "GET" and "{" not in path and name != "dataset_fit"
]
OF_A_RUN = [
    name for name in TOOLS if name.startswith("run_") or name in ("get_run", "stop_run", "pause_run", "resume_run")
]
OTHERS = [
    "launch_run", "fork_run", "recipe_schema", "recipe_metrics", "check_config", "get_dataset", "get_evaluation",
]  # fmt: skip
BY_THE_CLOCK = {"run_history"}  # says for how long the last state has lasted
REFUSED = {"resume_run", "get_evaluation"}  # a waiting run, and an evaluation that does not exist


@pytest.fixture
def arguments(launch, version) -> dict[str, dict]:
    """The arguments for these tools; `test_jobs` calls all others."""
    run, dataset = launch(), version.dataset_id
    one = {"run_id": run.pk}
    return {
        **{name: {} for name in PLAIN},
        **dict.fromkeys(OF_A_RUN, one),
        "run_metric": {**one, "key": "reward/mean"},
        "compare_runs": {"ids": str(run.pk)},
        "launch_run": {"body": {"recipe": "policy", "dataset": dataset, "config": {"steps": 4}}},
        "fork_run": {**one, "body": {"config": {"steps": 5}}},
        "recipe_schema": {"name": "policy"},
        "recipe_metrics": {"name": "policy"},
        "check_config": {"name": "policy", "body": {"config": {"steps": 4}}},
        "get_dataset": {"dataset_id": dataset},
        "get_evaluation": {"evaluation_id": 1},
    }


@pytest.mark.parametrize("name", [*PLAIN, *OF_A_RUN, *OTHERS])
def test_each_tool_does_its_job(agent, team, arguments, name):
    done, answer = agent.call(name, **arguments[name])
    assert done == (name not in REFUSED), answer
    method, path = TOOLS[name]
    if method == "GET" and done and name not in BY_THE_CLOCK:
        given = dict(arguments[name])
        query = {key: given.pop(key) for key in tools()[name].query & given.keys()}
        assert ApiClient(team.researcher).get(path.format(**given), **query).json() == answer


def test_it_may_do_what_its_token_and_role_may(team, arguments):
    reader = Speaking(team.reviewer)
    assert reader.call("list_runs")[0]
    done, answer = reader.call("stop_run", **arguments["stop_run"])
    assert not done and answer["error"]["code"] == "forbidden"
    done, answer = Speaking(team.researcher, datasets="write").call("list_runs")
    assert not done and answer["error"]["code"] == "token_lacks_area"
    other = Speaking(team.outsider)
    assert other.call("list_runs")[1]["items"] == []
    assert other.call("get_run", **arguments["get_run"])[1]["error"]["code"] == "not_found"


def test_what_it_does_is_in_the_audit_log_with_its_token(agent, arguments):
    agent.call("stop_run", **arguments["stop_run"])
    entry = AuditEntry.objects.get(action="run.stopped")
    assert entry.token and entry.actor.email == "rosa@example.org"


def test_strangers_sessions_and_pages_elsewhere_stay_outside(team, agent):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert Client().post("/mcp", body, content_type="application/json").status_code == 401
    assert browser(team.owner).post("/mcp", body, content_type="application/json").status_code == 401
    foreign = agent.client.post(
        "/mcp", body, content_type="application/json", headers={"origin": "https://evil.example"}
    )
    assert foreign.status_code == 403
    assert agent.client.get("/mcp").status_code == 405


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700), (b'"\\ud800"', -32700), (b"[]", -32600), (b"{}", -32600), (b'{"jsonrpc": "2.0", "id": {}}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "params": []}', -32601), (b'{"jsonrpc": "2.0", "id": 1, "params": [1]}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "drop"}}', -32602),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(agent, body, code):
    answer = agent.client.post("/mcp", body, content_type="application/json")
    assert answer.json()["error"]["code"] == code


def test_a_tool_that_is_not_there_is_told_with_names_like_it(agent):
    told = agent.say("tools/call", name="get_runs", arguments={}).json()["error"]["message"]
    assert (
        told.startswith("There is no tool 'get_runs'. Names like it are ") and "get_run" in told and "list_runs" in told
    )


def test_wrong_arguments_are_told_to_the_agent_as_the_answer_of_the_tool(agent):
    for name, given, told in (
        ("get_run", {}, "needs 'run_id'"),
        ("list_runs", {"x": 1}, "takes no 'x'. It takes cursor, limit, "),
        ("who_am_i", {"x": 1}, "It takes no arguments."),
        ("check_config", {"name": "policy", "config": {}}, "It is a field of 'body': send {'body': {'config': ...}}."),
        ("launch_run", {"recipe": "policy"}, "It is a field of 'body'"),
        ("list_runs", [1], "must be an object"),
        ("import_dataset", {"body": 1}, "`body` must be an object"),
        ("import_dataset", {"body": {"name": "x", "file": "text"}}, "`file` needs `name` and `content`"),
    ):
        result = agent.say("tools/call", name=name, arguments=given).json()["result"]
        assert result["isError"] and told in json.loads(result["content"][0]["text"])["error"]["message"]


def test_a_file_that_an_agent_sends_is_scanned_like_any_other(agent, clamd):  # noqa: F811
    file = {"name": "pairs.jsonl", "content": BAD}
    done, answer = agent.call("import_dataset", body={"name": "Pairs", "file": file})
    assert not done and answer["error"]["code"] == "file_refused" and clamd.seen == [BAD.encode()]


def test_an_id_that_is_none_leads_nowhere_else(agent):
    done, answer = agent.call("get_run", run_id="1/../x")
    assert not done and answer["error"]["code"] in ("invalid", "not_found")


def test_llms_txt_tells_the_way(client):
    told = client.get("/llms.txt")
    assert told.status_code == 200 and "/mcp" in told.content.decode() and "- `list_runs`:" in told.content.decode()
