"""A pass-rate probe, from the question to the filter: prompts that a model always, sometimes or never solves."""

import json

import pytest

from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401  fixtures
from trainer.config.errors import ConfigInvalid
from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec
from webapp.datasets import queries
from webapp.datasets.columns.filters import parse
from webapp.datasets.exploration import probes
from webapp.datasets.models import Probe
from webapp.datasets.versions import services as datasets
from webapp.evaluation.launch import services
from webapp.evaluation.models import Evaluation
from webapp.evaluation.work import running

from .recipes.fake import block, row

pytestmark = pytest.mark.django_db
NAMES_RED = Criterion(
    id="c", text="Names red", points=1, verifier=VerifierSpec(name="must_contain", args={"texts": ["red"]})
)


def example(key, domain, rubric=True) -> Example:
    prompt = (Message(role="user", content=f"Question {key}"),)
    return Example(
        key=key, prompt=prompt, domain=domain, rubric=Rubric(criteria=(NAMES_RED,)) if rubric else None, split="train"
    )


@pytest.fixture
def version(team):
    rows = [
        example("always", "maths"),
        example("half", "maths"),
        example("never", "law"),
        example("open", "law", False),
    ]
    dataset = datasets.create_dataset(team.researcher, "colours")
    return datasets.freeze(team.researcher, datasets.new_version(team.researcher, dataset, rows, None, {}))


@pytest.fixture
def answering(chat_server):  # noqa: F811
    """Answers “red” to every question, to some draws, or to none."""

    def said(body) -> str:
        asked = body["messages"][-1]["content"]
        return "red" if "always" in asked or ("half" in asked and body["seed"] % 2) else "blue"

    chat_server.answer = said
    return chat_server


def begun(team, version, writer, **config) -> Evaluation:
    config = {"writers": [writer], "samples": 4, "max_new_tokens": 16, **config}
    row = services.create(team.researcher, recipe="pass_rate", config=config, dataset=version)
    running.run(row.pk)
    row.refresh_from_db()
    return row


def keys(version, **given) -> list[str]:
    return [member.example.key for member in queries.examples(version, parse(given)).items]


def test_it_becomes_a_property_of_the_examples_and_leaves_the_frozen_version_as_it_is(
    team,
    version,
    answering,
    endpoint,  # noqa: F811
    as_researcher,
):
    digest = version.digest
    done = begun(team, version, {"endpoint": endpoint.pk})
    assert done.state == "finished", done.problem
    found = Probe.objects.get()
    assert (found.model, found.samples, found.evaluation, found.version_id) == (endpoint.name, 4, done.pk, version.pk)
    by_reach = {part.name: part.count for part in probes.map_of(version, found).parts}
    assert by_reach == {"solved": 1, "learnable": 1, "out": 1, "unknown": 1}
    assert keys(version, probe=found.pk, reach="learnable") == ["half"]
    assert keys(version, probe=found.pk, pass_rate="0.5..") == ["always", "half"]
    version.refresh_from_db()
    assert version.digest == digest and version.state == "frozen"
    assert done.results["made"]["pass_rates"] is True
    page = as_researcher.get(f"/evaluations/{done.pk}").content.decode()
    link = f"/datasets/{version.dataset_id}/versions/1/pass-rates?evaluation={done.pk}"
    assert link in page and as_researcher.get(link).status_code == 200


def test_the_report_is_the_map_with_intervals_by_prompt(team, version, answering, endpoint):  # noqa: F811
    done = begun(team, version, {"endpoint": endpoint.pk})
    told = row(done.results, "Map of the data", endpoint.name)
    assert told["Mean pass rate"]["value"] == pytest.approx(0.5) and told["Mean pass rate"]["n"] == 3
    assert told["Learnable"]["value"] == pytest.approx(1 / 3) and told["Learnable"]["missing"] == 1
    assert told["Learnable"]["low"] < 1 / 3 < told["Learnable"]["high"] and told["Not known"]["value"] == 1
    assert [cells[0]["text"] for cells in block(done.results, "Prompts by pass rate")["rows"]] == [
        "none",
        "0.5 to 0.6",
        "all",
    ]
    several = row(done.results, "Avg@k", endpoint.name)
    assert several["k"]["value"] == 4 and several["Avg@k success"]["value"] == pytest.approx(0.5)
    assert several["pass@k"]["value"] == pytest.approx(2 / 3)
    (points,) = [each["points"] for each in block(done.results, "pass@k")["series"]]
    # one of four draws: 1, 1/2, 0; two of four: 1, 1 - C(2, 2) / C(4, 2) = 5/6, 0
    assert [(point["x"], round(point["value"], 4)) for point in points] == [(1, 0.5), (2, 0.6111), (4, 0.6667)]
    assert done.cases.filter(tags__contains=["reach:learnable"]).count() == 4


def test_run_again_it_asks_nothing_and_each_run_has_its_own_probe(team, version, answering, endpoint):  # noqa: F811
    begun(team, version, {"endpoint": endpoint.pk})
    asked = answering.requests
    begun(team, version, {"endpoint": endpoint.pk})
    assert answering.requests == asked == 16
    first, second = Probe.objects.order_by("pk")
    assert bytes(first.passed) == bytes(second.passed) == bytes([4, 2, 0, 0])


def test_a_model_whose_answers_nothing_decides_fails_in_words_and_leaves_no_probe(
    team,
    answering,
    endpoint,  # noqa: F811
):
    dataset = datasets.create_dataset(team.researcher, "open")
    version = datasets.new_version(team.researcher, dataset, [example("open", "", False)], None, {})
    done = begun(team, version, {"endpoint": endpoint.pk})
    assert done.state == "failed" and "give the prompts rubrics" in done.problem
    assert not Probe.objects.exists()


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"samples": 1}, "samples"),
        ({"samples": 65}, "samples"),
        ({"threshold": 0}, "threshold"),
        ({"writers": [{}]}, "writers.0.model"),
        ({"split": "test"}, "split"),
        ({"into": "x"}, "into"),
    ],
)
def test_bad_input_is_refused_at_its_field(team, version, endpoint, config, field):  # noqa: F811
    with pytest.raises(ConfigInvalid) as refused:
        services.create(
            team.researcher,
            recipe="pass_rate",
            config={"writers": [{"endpoint": endpoint.pk}], **config},
            dataset=version,
        )
    assert field in json.dumps([problem.path for problem in refused.value.problems])
