"""Pass rates that are written into a version: the changed examples, the page, the API, and who may write."""

import pytest

from tests.team import ApiClient, browser
from trainer.contracts import Example
from webapp.core.problems import Invalid
from webapp.datasets import probe_services, queries, written_rates
from webapp.datasets.models import Probe
from webapp.datasets.versions import lineage

from .test_probes import measured, probe, record, version  # noqa: F401 - fixtures


def rates(version) -> dict[str, float | None]:  # noqa: F811
    lines = (Example.model_validate_json(line) for _, line in queries.stream_canonical(version))
    return {example.key: example.meta.get("pass_rate") for example in lines}


def test_the_next_version_has_the_rates_and_this_one_stays(team, version, probe):  # noqa: F811
    made = written_rates.write(team.researcher, version, [probe])
    assert (made.number, rates(made)) == (2, {"a": 1.0, "b": 0.375, "c": 0.0, "d": None, "e": 0.5})
    assert rates(version) == {"a": None, "b": None, "c": None, "d": None, "e": 0.5}
    assert lineage.describe(made.lineage) == (
        "Pass rates written into version 1",
        ["m, 8 answers", "3 examples have one"],
        "dices",
    )


def test_the_answers_of_several_probes_count_together(team, version, probe):  # noqa: F811
    larger = probe_services.store(version, team.researcher.user, measured({"c": (3, 64), "d": (0, 64)}, evaluation=2))
    made = written_rates.write(team.researcher, version, [probe, larger])
    assert rates(made) == {"a": 1.0, "b": 0.375, "c": round(3 / 72, 6), "d": 0.0, "e": 0.5}


def test_a_probe_that_knows_no_example_is_refused(team, version):  # noqa: F811
    nothing = probe_services.store(version, team.researcher.user, measured({"d": (0, 0)}))
    with pytest.raises(Invalid) as caught:
        written_rates.write(team.researcher, version, [nothing])
    assert caught.value.fields == {"probes": "no example of this version has a pass rate by them"}


def test_the_page_writes_and_goes_to_the_version(team, version, probe):  # noqa: F811
    client = browser(team.researcher)
    where = f"/datasets/{version.dataset_id}/versions/1/pass-rates"
    assert "Create a version with these pass rates" in client.get(where).content.decode()
    answer = client.post(f"{where}/write", {"probe": [str(probe.pk), ""]})
    assert (answer.status_code, answer["Location"]) == (302, f"/datasets/{version.dataset_id}/versions/2")


def test_the_api_writes_for_those_who_may_and_knows_no_foreign_probe(team, version, probe):  # noqa: F811
    where = f"/datasets/{version.dataset_id}/versions/1/probes/write"
    answer = ApiClient(team.researcher).post(where, {"probes": [probe.pk]})
    assert (answer.status_code, answer.json()["number"]) == (201, 2)
    assert ApiClient(team.researcher).post(where, {"probes": [probe.pk + 1]}).status_code == 404
    assert ApiClient(team.researcher).post(where, {"probes": []}).status_code == 422
    assert ApiClient(team.reviewer).post(where, {"probes": [probe.pk]}).status_code == 403
    assert ApiClient(team.outsider).post(where, {"probes": [probe.pk]}).status_code == 404
    assert Probe.objects.count() == 1
