"""Pass rates beside a version: filters, the map, the page, the API, and the rates that another version shares."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.pages import page_html
from tests.team import ApiClient, browser
from trainer.contracts import Example
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.datasets import probe_services, queries
from webapp.datasets.columns.filters import parse, query, words
from webapp.datasets.curation import runner
from webapp.datasets.curation import services as curating
from webapp.datasets.exploration import narrowing, probes
from webapp.datasets.models import Dataset, Probe
from webapp.datasets.probe_services import MeasuredProbe
from webapp.datasets.versions import services as datasets

# key -> (answers that pass, answers with a score); e was not measured
COUNTS = {"a": (8, 8), "b": (3, 8), "c": (0, 8), "d": (0, 0)}


def record(key, **extra) -> Example:
    prompt = [{"role": "user", "content": f"Question {key}"}]
    return Example.model_validate({"key": key, "prompt": prompt, **extra})


@pytest.fixture
def version(team):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Sums")
    rows = [record("a", domain="maths"), record("b", domain="maths"), record("c", domain="law")]
    rows += [record("d"), record("e", meta={"pass_rate": 0.5})]
    return datasets.new_version(team.researcher, dataset, rows, None, {"from": "test"})


def measured(counts=COUNTS, evaluation=1, place=0, model="m") -> MeasuredProbe:
    return MeasuredProbe(evaluation, place, model, 8, 1.0, counts)


@pytest.fixture
def probe(team, version) -> Probe:
    return probe_services.store(version, team.researcher.user, measured())


def keys(version, **given) -> str:
    return "".join(member.example.key for member in queries.examples(version, parse(given)).items)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"reach": "solved"}, "a"),
        ({"reach": "learnable"}, "b"),
        ({"reach": "out"}, "c"),
        ({"reach": "unknown"}, "de"),
        ({"pass_rate": "0.375.."}, "ab"),
        ({"pass_rate": "..0.375"}, "c"),
        ({"reach": "learnable", "domain": "law"}, ""),
        ({}, "abcde"),
    ],
)
def test_its_pass_rates_narrow_the_list_as_any_other_column(version, probe, given, left):
    assert keys(version, probe=str(probe.pk), **given) == left
    assert narrowing.count(version, parse({"probe": probe.pk, **given})) == len(left)


def test_without_a_probe_the_rates_are_those_of_the_file(version, probe):
    assert keys(version, reach="learnable") == keys(version, pass_rate="0.5..") == "e"
    assert keys(version, reach="unknown") == "abcd"


def test_what_is_written_is_read_again_and_a_probe_alone_leaves_out_nothing(team, version, probe):
    filters = parse({"probe": str(probe.pk), "reach": "out"})
    assert parse(query(filters)) == filters and words(filters)[0] == ("reach", "reach: no answer passes")
    assert not parse({"probe": "7"}).narrow
    for wrong in ("seven", "-1", "9" * 40):
        with pytest.raises(Invalid) as refused:
            parse({"probe": wrong})
        assert set(refused.value.fields) == {"probe"}
    with pytest.raises(Invalid, match="narrow nothing|No filter"):
        curating.derive(team.researcher, version, parse({"probe": str(probe.pk)}))


def test_a_probe_of_another_dataset_is_refused_at_its_field(team, version, probe, as_researcher, api):
    other = datasets.new_version(
        team.researcher, Dataset.objects.create(workspace=team.workspace, name="Other"), [record("x")], None, {}
    )
    with pytest.raises(Invalid) as refused:
        narrowing.count(other, parse({"probe": probe.pk, "reach": "out"}))
    assert "has no probe" in refused.value.fields["probe"]
    told = page_html(as_researcher.get(f"/datasets/{other.dataset_id}", {"probe": probe.pk}, follow=True))
    assert f"this dataset has no probe {probe.pk}" in told
    count = api.get(f"/datasets/{other.dataset_id}/versions/1/count", probe=probe.pk)
    assert count.status_code == 422 and [each["path"] for each in count.json()["error"]["fields"]] == ["probe"]


def test_a_derived_version_keeps_the_rates_of_what_it_shares_and_knows_nothing_of_what_changed(team, version, probe):
    job = curating.derive(team.researcher, version, parse({"probe": probe.pk, "reach": "learnable"}), keep=False)
    runner.run(job.pk)
    job.refresh_from_db()
    assert keys(job.made) == "acde" and job.made.lineage["filters"] == {"probe": str(probe.pk), "reach": "learnable"}
    assert keys(job.made, probe=str(probe.pk), reach="out") == "c"
    changed = [record("a", domain="changed"), record("c", domain="law"), record("new")]
    after = datasets.new_version(team.researcher, version.dataset, changed, None, {"from": "test"})
    assert keys(after, probe=str(probe.pk), reach="unknown") == "anew"
    assert keys(after, probe=str(probe.pk), reach="out") == "c"


def test_the_map_counts_every_example_once(version, probe):
    found = probes.map_of(version, probe)
    assert {part.name: part.count for part in found.parts} == {"solved": 1, "learnable": 1, "out": 1, "unknown": 2}
    assert found.known == 3 and [bar.count for bar in found.bars] == [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    assert sum(bar.count for bar in found.bars) == found.known
    shares = {part.name: part.share for part in found.parts}
    assert shares["unknown"] is None and shares["out"].value == pytest.approx(1 / 3)
    assert (round(shares["out"].low, 3), round(shares["out"].high, 3)) == (0.061, 0.792)  # Wilson, 1 of 3
    by_domain = {name: {part.name: part.count for part in parts} for name, parts in found.domains}
    assert by_domain["maths"] == {"solved": 1, "learnable": 1, "out": 0, "unknown": 0}
    for part in [*found.parts, *found.bars, *[each for _, parts in found.domains for each in parts]]:
        assert narrowing.count(version, parse(part.query)) == part.count


def test_it_is_stored_once_for_each_model_of_an_evaluation(team, version, probe):
    again = probe_services.store(version, team.researcher.user, measured({"a": (0, 8)}))
    assert again.pk == probe.pk and bytes(Probe.objects.get().passed) == bytes([8, 3, 0, 0, 0])
    probe_services.store(version, None, measured(place=1, model="n"))
    assert [each.model for each in probes.of_dataset(version.dataset_id)] == ["n", "m"]
    assert AuditEntry.objects.filter(action="probe.stored").count() == 2


def test_the_page_of_an_example_has_its_interval(version, probe, as_researcher):
    member = version.members.select_related("example").get(position=2)
    page = page_html(as_researcher.get(f"/examples/{member.example_id}"))
    assert "of 8 answers, 95% interval 0% to 32%" in page  # Wilson, 0 of 8
    unscored = version.members.get(position=3).example_id
    assert "no answer has a score" in page_html(as_researcher.get(f"/examples/{unscored}"))


def test_of_examples_beyond_its_counts_a_probe_says_nothing(team, version, probe, as_researcher):
    Probe.objects.filter(pk=probe.pk).update(passed=bytes([8, 3]), tried=bytes([8, 8]))
    for position in (2, 4):
        example = version.members.get(position=position).example_id
        page = as_researcher.get(f"/examples/{example}")
        assert page.status_code == 200 and "no answer has a score" in page_html(page)
    assert keys(version, probe=str(probe.pk), reach="unknown") == "cde"
    assert keys(version, probe=str(probe.pk), reach="solved") == "a"
    rows = [record("z"), record("c", domain="law"), record("b", domain="maths")]
    other = datasets.new_version(team.researcher, version.dataset, rows, version, {"from": "test"})
    assert keys(other, probe=str(probe.pk), reach="learnable") == "b"
    assert keys(other, probe=str(probe.pk), reach="unknown") == "cdez"


def test_the_page_leads_to_the_examples_and_shows_the_newest_probe(version, probe, team, as_researcher):
    address = f"/datasets/{version.dataset_id}/versions/1/pass-rates"
    page = page_html(as_researcher.get(address))
    assert f"?probe={probe.pk}&amp;reach=learnable" in page and "Out of reach" in page and "maths" in page
    later = probe_services.store(version, None, measured(evaluation=2, model="later"))
    assert "<option value=" in page and f'value="{later.pk}" selected' in page_html(as_researcher.get(address))
    first = page_html(as_researcher.get(address, {"evaluation": 1}))
    assert f'value="{probe.pk}" selected' in first
    for wrong in ({"probe": 10**6}, {"probe": "x"}, {"evaluation": 7}):
        assert as_researcher.get(address, wrong).status_code == 404
    seen = page_html(as_researcher.get(f"/datasets/{version.dataset_id}", {"probe": probe.pk, "reach": "out"}))
    assert "pass rates of m, 8 answers" in seen and "no answer passes" in seen


def test_without_a_probe_the_page_says_how_one_is_made(version, team, as_researcher):
    address = f"/datasets/{version.dataset_id}/versions/1/pass-rates"
    assert "/evaluations/new?recipe=pass_rate&amp;dataset=" in page_html(as_researcher.get(address))
    assert "/evaluations/new" not in page_html(browser(team.reviewer).get(address))


def test_deleting_asks_first_and_its_filters_are_refused_from_then_on(version, probe, team, as_researcher):
    address = f"/probes/{probe.pk}/delete"
    assert browser(team.reviewer).post(address, {"sure": "1"}).status_code == 403
    assert browser(team.outsider).post(address, {"sure": "1"}).status_code == 404
    assert "Delete the pass rates of m?" in page_html(as_researcher.post(address))
    assert keys(version, probe=str(probe.pk), reach="out") == "c"
    assert as_researcher.post(address, {"sure": "1"}).url.endswith("/pass-rates")
    with pytest.raises(Invalid):
        keys(version, probe=str(probe.pk), reach="out")
    derive = f"/datasets/{version.dataset_id}/versions/1/derive"
    told = page_html(as_researcher.get(derive, {"probe": probe.pk, "reach": "out"}, follow=True))
    assert f"this dataset has no probe {probe.pk}" in told


def test_the_api_gives_probes_the_map_and_each_rate(version, probe, team, api):
    base = f"/datasets/{version.dataset_id}"
    (listed,) = api.get(f"{base}/probes").json()["items"]
    assert (listed["model"], listed["version"], listed["samples"], listed["evaluation"]) == ("m", 1, 8, 1)
    found = api.get(f"{base}/versions/1/probes/{probe.pk}").json()
    assert found["known"] == 3 and found["parts"][1] == {
        "name": "learnable",
        "count": 1,
        "filters": {"probe": str(probe.pk), "reach": "learnable"},
    }
    rates = api.get(f"{base}/versions/1/probes/{probe.pk}/rates", limit=4).json()
    assert [(each["key"], each["passed"], each["tried"], each["rate"]) for each in rates["items"]] == [
        ("a", 8, 8, 1.0),
        ("b", 3, 8, 0.375),
        ("c", 0, 8, 0.0),
        ("d", 0, 0, None),
    ]
    assert rates["items"][3]["low"] is None and rates["items"][1]["low"] < 0.375 < rates["items"][1]["high"]
    last = api.get(f"{base}/versions/1/probes/{probe.pk}/rates", cursor=rates["next"]).json()
    assert [each["key"] for each in last["items"]] == ["e"] and last["next"] is None
    listed = api.get(f"{base}/versions/1/examples", probe=probe.pk, reach="solved").json()["items"]
    assert [each["key"] for each in listed] == ["a"]
    outside = ApiClient(team.outsider)
    assert outside.get(f"{base}/probes").status_code == 404
    refused = outside.delete(f"/probes/{probe.pk}")
    assert refused.status_code == 404, refused.content
    assert api.get(f"{base}/versions/1/probes/{10**6}").status_code == 404
    assert api.delete(f"/probes/{probe.pk}").status_code == 204 and not Probe.objects.exists()


def test_older_probes_than_the_page_lists_are_on_further_pages_of_the_api_and_found_by_their_link(
    version, probe, team, api, as_researcher, monkeypatch
):
    monkeypatch.setattr(probes, "MOST_SHOWN", 1)
    newer = probe_services.store(version, team.researcher.user, measured(evaluation=2, model="newer"))
    address = f"/datasets/{version.dataset_id}/probes"
    first = api.get(address, limit=1).json()
    assert [each["id"] for each in first["items"]] == [newer.pk] and first["next"]
    second = api.get(address, limit=1, cursor=first["next"]).json()
    assert [each["id"] for each in second["items"]] == [probe.pk] and second["next"] is None
    page = f"/datasets/{version.dataset_id}/versions/1/pass-rates"
    for asked in ({"evaluation": "1"}, {"probe": probe.pk}):
        told = page_html(as_researcher.get(page, asked))
        assert f'<option value="{probe.pk}" selected' in told


def test_the_number_of_queries_does_not_grow_with_examples_or_probes(team, as_researcher):
    def cost(name, rows, count, page):
        dataset = Dataset.objects.create(workspace=team.workspace, name=name)
        records = [record(f"k{i}", domain="maths") for i in range(rows)]
        version = datasets.new_version(team.researcher, dataset, records, None, {"from": "test"})
        counts = {f"k{i}": (i % 3, 2) for i in range(rows)} | {"k0": (1, 2)}
        for place in range(count):
            probe_services.store(version, None, measured(counts, evaluation=dataset.pk, place=place))
        example = version.members.first().example_id
        address = page.format(dataset=dataset.pk, probe=Probe.objects.latest("pk").pk, example=example)
        as_researcher.get(address)  # packed columns are in memory from now on
        with CaptureQueriesContext(connection) as captured:
            assert as_researcher.get(address).status_code == 200
        return len(captured)

    for page in (
        "/datasets/{dataset}/versions/1/pass-rates",
        "/datasets/{dataset}?probe={probe}&reach=learnable",
        "/examples/{example}",
    ):
        assert cost(f"few {page}", 4, 1, page) == cost(f"many {page}", 40, 5, page), page
