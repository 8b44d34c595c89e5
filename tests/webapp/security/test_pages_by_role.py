"""Every page, opened by each role and by strangers, with existing rows in its address. A new page is closed to every role that is not named
here.
"""

import re
from http.cookies import SimpleCookie

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.team import browser
from tests.webapp.evaluation.conftest import as_file, lines
from tests.webapp.experiments.conftest import make_version
from tests.webapp.test_closed_doors import OPEN
from tests.webapp.test_what_annotators_see import filled, ids_of, working
from webapp.accounts.members.services import invite
from webapp.accounts.models import RANK, Invite, Role
from webapp.accounts.tokens.services import create_token
from webapp.api import api
from webapp.datasets import probe_services
from webapp.datasets.models import CurationJob, ImportJob, SavedView
from webapp.datasets.probe_services import MeasuredProbe
from webapp.evaluation.launch import services as evaluations
from webapp.evaluation.recordings import services as recordings
from webapp.experiments.after import services as chains
from webapp.experiments.launch import checks, services
from webapp.experiments.models import ClaimStudy, ShareLink, Sweep
from webapp.experiments.repeats import services as repeats
from webapp.experiments.repeats.rhythm import Rhythm
from webapp.identity.models import GroupRole
from webapp.inference.endpoints import services as endpoints
from webapp.inference.models import RegisteredModel
from webapp.judging.models import Trial
from webapp.reports import services as reports
from webapp.webhooks.models import Webhook
from webapp.weights.models import WeightsJob

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
ANNOTATORS = {  # pages about the person and their own tasks, forms that they send, and the sign-in pages
    "home", "search", "version", "api_docs", "help", "help_list", "help_page", "help_source", "healthz", "readyz", "verifiers", "verifier_try", "workspaces", "switch_workspace",
    "settings", "profile", "theme", "tokens", "token_revoke", "sessions_end", "address_check", "verify", "project_work", "project_work_guidelines",
    "shared", "shared_chart", "shared_chart_curves", "shared_compare", "shared_curves", "sign_in", "sign_in_link", "sign_out", "account_login", "account_logout", "invite", "project_join", "account_reauthenticate",
    "openid_connect_login", "openid_connect_callback", "/runs", "sessions_used", "saml_login", "saml_acs", "saml_finish_acs", "saml_metadata", "saml_sls", "personal_data", "personal_data_download", "personal_data_link", "erase_account",
}  # fmt: skip
OWNERS = {
    "member_change", "invite_cancel", "audit", "audit_export", "webhooks", "webhook", "webhook_act", "webhook_delivery", "sign_in_rules",
    "map_group", "unmap_group", "ask_second_factor", "limit_sessions", "share_links_allow", "checkpoint_rule", "POST members",
}  # fmt: skip
# pages with forms, which are useless for roles that may not send them
RESEARCHERS_READ = {
    "chain_new",
    "chain_recipe",
    "claim_new", "dataset_derive", "endpoint_edit", "endpoint_new", "evaluation_again", "evaluation_new", "import_new", "judge_edit", "judge_examples", "judge_new", "judge_pick",
    "judge_try", "model_edit", "model_new", "model_promote", "model_stage", "project_new", "project_settings", "report_edit", "report_new", "report_share", "run_edit", "run_fork", "run_new", "run_rollouts_annotate", "run_rollouts_dataset", "share_links", "share_new", "sweep_again", "sweep_new", "trainable", "try", "weights_new",
}  # fmt: skip
REVIEWERS_CHANGE = {
    "notice_settings",
    "notices_read",
    "watch",
    "judge_compare",
    "objective_calculate",
    "review_majority",
    "review_match",
    "run_reasons",
    "runs_csv",
    "view_delete",
    "view_save",
}
# a row of each is made here: if even the lowest allowed role gets 404, nothing was tested
MADE = {
    "claim_again", "claim_new", "claim_standing", "claim_study", "curation", "dataset_version", "endpoint", "evaluation", "example", "import_job", "judge", "judge_trial", "lineage", "model", "project",
    "project_task", "report", "report_edit", "report_file", "report_history", "report_version", "review_task", "run", "run_tab", "sweep", "sweep_again", "sweep_new", "sweep_standing", "webhook", "weights_job", "chain_new",
}  # fmt: skip


def routes(patterns=None, prefix: str = "") -> dict[str, str]:
    """{route: name} of every page. Another test is for the API."""
    found: dict[str, str] = {}
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver) and not route.startswith("api/"):
            found |= routes(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern) and not route.startswith("api/"):
            found[route] = pattern.name or f"/{route}"
    return found


@pytest.fixture
def addresses(team) -> dict[str, str]:
    """{route: address}, with ids of rows of the lab."""
    project = working(team, "pairwise")
    version = make_version(team.owner)
    model = RegisteredModel.objects.create(
        workspace=team.workspace, name="smollm2-135m-instruct", source="hub", path="o/m"
    )
    chosen = checks.DatasetChoice(id=version.dataset_id)
    run = services.launch(team.researcher, recipe="policy", config={"steps": 4}, dataset=chosen)
    recording = recordings.store_recording(team.researcher, "v.jsonl", as_file(lines()))
    invite(team.owner, "nia@example.org", "annotator")
    judge = team.workspace.judges.first()
    ids = {
        "run_id": run.pk,
        "model_id": model.pk,
        "evaluation_id": evaluations.create(
            team.researcher, recipe="judge_audit", config={}, recording=recording, dataset=project.version
        ).pk,
        "endpoint_id": endpoints.create_endpoint(team.researcher, "recorded", name="e").pk,
        "token_id": create_token(team.owner, "lab")[0].pk,
        "member_id": team.annotator.pk,
        "hook_id": Webhook.objects.create(workspace=team.workspace, url="https://example.org", events=[]).pk,
        "trial_id": Trial.objects.create(workspace=team.workspace, judge=judge, spec={}, examples=[]).pk,
        "view_id": SavedView.objects.create(workspace=team.workspace, dataset=project.version.dataset, name="v").pk,
        "probe_id": probe_services.store(project.version, None, MeasuredProbe(1, 0, "m", 8, 1.0, {})).pk,
        "row_id": GroupRole.objects.create(workspace=team.workspace, group="g", role="annotator").pk,
        "workspace_id": team.workspace.pk,
        "study_id": ClaimStudy.objects.create(workspace=team.workspace, plan="rationale", plan_digest="d").pk,
        "sweep_id": Sweep.objects.create(
            workspace=team.workspace,
            experiment=run.experiment,
            name="s",
            recipe="policy",
            config=run.config,
            dataset=1,
            version=1,
            axes=[],
            method="grid",
            metric="m",
            higher=True,
            seeds=1,
            wanted=0,
            at_once=1,
        ).pk,
        "report_id": reports.create(team.researcher, "What we saw", "## Words").pk,
        "link_id": ShareLink.objects.create(
            workspace=team.workspace, name="l", digest="d" * 64, created_by=team.researcher.user
        ).pk,
        "behind_id": 0,
        "step_id": chains.add(team.researcher, run, chains.StepAsked(kind="run", dataset=chosen, with_output=False)).pk,
        "repeat_id": repeats.add(team.researcher, run, repeats.RepeatAsked(Rhythm(every_hours=24))).pk,
        "what": "run",
        "what_id": run.pk,
        "recipe": "policy",
        "name": "grpo",
        "plan": "rationale",
        "kind": "csv",
        "subject_id": run.pk,
        "tab": "lineage",
        "number": 1,
    }
    jobs = {
        "curations": CurationJob.objects.create(version=project.version, kind="leaks").pk,
        "imports": ImportJob.objects.create(
            workspace=team.workspace, dataset_name="d", file_name="f", format="auto"
        ).pk,
        "jobs": WeightsJob.objects.create(
            workspace=team.workspace, kind="generate", title="t", key="k", model=model
        ).pk,
    }
    found, of_project = {}, ids_of(team, project)
    for route in routes():
        known = ids | {"job_id": jobs.get(route.partition("/")[0]), "invite_id": _invite(route)}
        known = {name: value for name, value in known.items() if value is not None}
        shown = PARAMETER.sub(lambda match, known=known: str(known.get(match[1], match[0])), route)  # type: ignore[misc]
        found[route] = filled(of_project, shown)
    return found


def _invite(route: str) -> int | None:
    return Invite.objects.get().pk if route.startswith("settings/") else None


def _status(client: Client, method: str, address: str) -> int:
    """Changes of the request are undone."""
    client.raise_request_exception, cookies = False, client.cookies
    client.cookies = SimpleCookie(cookies.output(header="", sep=";"))  # some addresses sign the person out
    with transaction.atomic():
        status = getattr(client, method)(address).status_code
        transaction.set_rollback(True)
    client.cookies = cookies
    return int(status)


def least(route: str, name: str, method: str) -> Role | None:
    """The role that a page needs; None for a right in the whole installation."""
    if route.startswith("installation") or (name, method) == ("workspaces", "post"):
        return None
    if name in ANNOTATORS or name.startswith("mfa_"):
        return Role.ANNOTATOR
    if name in OWNERS or f"{method.upper()} {name}" in OWNERS:
        return Role.OWNER
    if method == "get":
        return Role.RESEARCHER if name in RESEARCHERS_READ else Role.REVIEWER
    return Role.REVIEWER if name in REVIEWERS_CHANGE else Role.RESEARCHER


PROGRAMS = ("scim/", "mlflow/", "mcp")
FOR_PEOPLE = {"mlflow_links", "mlflow_run"}  # where the links lead that MLflow's client prints
FOR_ALL = ("llms.txt",)  # describes the API, and shows nothing of any workspace


def test_every_page_is_closed_below_its_role_and_to_other_workspaces(team, addresses):
    """Opened by the lowest allowed role, by the role below it, and by the owner of another workspace."""
    people = [
        team.annotator,
        team.reviewer,
        team.researcher,
        team.owner,
    ]  # the first owner is also the administrator
    for who in people:
        who.user.set_password("a long enough passphrase")
        who.user.save(update_fields=["password"])
    clients, outsider = [browser(who) for who in people], browser(team.outsider)
    wrong, shown, absent = {}, {}, set()
    for route, name in routes().items():
        for method in ("get", "post"):
            needed, address = least(route, name, method), addresses[route]
            rank = len(people) - 1 if needed is None else RANK[needed]
            inside = _status(clients[rank], method, address)
            # for directories and programs with their own keys
            if route.startswith(PROGRAMS) and name not in FOR_PEOPLE:
                refused = {401} if route.startswith("scim/") else {401, 405}
                wrong |= {address: inside} if inside not in refused else {}
                continue
            if route in FOR_ALL:
                continue
            if name == "metrics" or 405 in (inside, inside == 403 and _status(clients[-1], method, address)):
                continue  # for programs (see test_metrics.py), or not a page with this method
            if method == "get" and inside == 404:
                absent.add(name)
            below = _status(clients[rank - 1], method, address) if rank else 403
            if inside in (401, 403) or below != 403:
                wrong[f"{method} {address}"] = (inside, below)
            if re.search(r"<int:(?!number|pk)", route):
                elsewhere = _status(outsider, method, address)
                if elsewhere not in (403 if needed is None else 404, 405):
                    shown[f"{method} {address}"] = elsewhere
    assert (wrong, shown) == ({}, {})
    assert absent & MADE == set()


def test_strangers_reach_no_page_and_no_operation_whatever_the_method(addresses):
    reached, doors = {}, {each.removesuffix("/x") for each in OPEN}
    for address in addresses.values():
        for method in ("get", "post", "put", "patch", "delete"):
            answer = Client().generic(method.upper(), address)
            away = answer.status_code == 302 and answer["Location"].startswith("/sign-in")
            if (
                not away
                and answer.status_code not in (401, 403, 404, 405)
                and address.strip("/").removesuffix("/1") not in doors
            ):
                reached[f"{method} {address}"] = answer.status_code
    for path, methods in api.get_openapi_schema()["paths"].items():
        for method in methods:
            address = re.sub(r"{\w+}", "1", path)
            status = Client().generic(method.upper(), address, "{}", content_type="application/json").status_code
            if status != 401:
                reached[f"{method} {path}"] = status
    assert reached == {}
