"""The test data of a run or an evaluation, compared with the training data of the models that it names. The result is shown before the
start.
"""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.pages import page_html
from trainer.contracts import Example as Record
from webapp.datasets.curation import near_leak_search
from webapp.datasets.leakage import near_leaks
from webapp.datasets.versions import services
from webapp.evaluation.launch import services as evaluations
from webapp.experiments.models import Artifact, Run
from webapp.experiments.outputs import trained_on
from webapp.inference.models import RegisteredModel

LONG = "the quick brown fox jumps over the lazy dog while the cat sleeps on the warm wall near the old mill number"


def text(n):
    return " ".join(f"{word}{n}" for word in LONG.split())


def version_of(membership, name, **sides):
    """A version with prompts on these sides."""
    dataset = services.create_dataset(membership, name)
    rows = [(side, prompt) for side, prompts in sides.items() for prompt in prompts]
    records = [
        Record(key=f"k{n}", split=side, prompt=[{"role": "user", "content": prompt}], reference="Yes.")
        for n, (side, prompt) in enumerate(rows)
    ]
    return services.new_version(membership, dataset, records, None, {"from": "import"})


def trained(team, launch, version, name, base=None):
    """A registered model that a run has trained on this version, starting from `base`."""
    run = launch()
    Run.objects.filter(pk=run.pk).update(dataset_version=version, **({"model": base} if base else {}))
    model = RegisteredModel.objects.create(workspace=team.workspace, name=name, source="hub", path=f"x/{name}")
    facts = {"step": 4, "role": "model", "path": f"outputs/{name}", "bytes": 1, "digest": "d" * 64}
    Artifact.objects.create(run=run, registered=model, **facts)
    return model


@pytest.fixture
def twice_trained(team, launch):
    """The model of the second run. The first run trained on texts 1 and 2, the second one continued on text 3."""
    first = version_of(team.researcher, "first", train=[text(1), text(2)], heldout=["other"])
    second = version_of(team.researcher, "second", train=[text(3)], heldout=["another"])
    return trained(team, launch, second, "twice", base=trained(team, launch, first, "once"))


def test_what_a_model_has_seen_goes_back_through_all_it_begins_with(team, launch, twice_trained):
    def names(*models, runs=()):
        return [each.dataset.name for each in trained_on.versions(team.workspace.id, models, runs)]

    once = RegisteredModel.objects.get(name="once")
    assert names(twice_trained.pk) == ["second", "first"] and names(once.pk) == ["first"]
    adapter = RegisteredModel.objects.create(
        workspace=team.workspace, name="on top", source="local", path="/a", base=twice_trained
    )
    assert names(adapter.pk) == ["second", "first"] == names(runs=[twice_trained.artifact.run_id])
    RegisteredModel.objects.filter(pk=once.pk).update(base=adapter)  # a circle also ends
    assert names(adapter.pk) == ["second", "first"]
    assert trained_on.versions(team.outsider.workspace_id, [twice_trained.pk], [twice_trained.artifact.run_id]) == []


def test_a_run_is_told_before_its_launch(team, twice_trained, api, as_researcher, monkeypatch):
    asked = []
    monkeypatch.setattr(near_leaks, "enqueue", lambda name, *args: asked.append(args))
    version = version_of(team.researcher, "next", train=["x y z"], heldout=[text(1), f"{text(3)} please", "new"])
    address = f"/runs/new?recipe=sft&dataset={version.dataset_id}:1&at.model.name=twice"
    page = page_html(as_researcher.get(address))
    assert "<strong>1 held-out example of next v1</strong> has its prompt" in page and "in first v1" in page
    assert (
        "a held-out prompt of next v1 is nearly the same as one that is trained on in second v1. A job is looking"
        in page
    )
    for each in set(asked):
        near_leak_search.look(*each)
    config = {"model": {"name": "twice"}, "data": {"source": "references"}}
    told = api.post("/recipes/sft/check", {"config": config, "dataset": {"id": version.dataset_id}}).json()
    assert [(leak["train"]["name"], leak["prompts"]) for leak in told["leaks"]] == [("first", 1)]
    alike = {each["train"]["name"]: (each["known"], each["prompts"]) for each in told["near"]}
    assert alike == {"next": (True, 0), "first": (True, 0), "second": (True, 1)}
    page = page_html(as_researcher.get(address))
    assert "1 held-out prompt of next v1 is nearly the same as one that is trained on in second v1" in page
    assert api.post("/recipes/sft/check", {"config": {}}).json()["leaks"] is None
    assert api.post("/recipes/sft/check", {"config": {}, "dataset": 10**9}).status_code == 422
    clean = as_researcher.get(address.replace("twice", "smollm2-135m-instruct")).content.decode()
    assert "has its prompt" not in clean and "second v1" not in clean.split('id="run-form"')[1].split("<select")[0]


def test_an_evaluation_is_told_before_it_starts_and_with_its_result(team, twice_trained, api, as_researcher):
    version = version_of(team.researcher, "tried", train=[text(2)], heldout=[text(3), "new"])
    config = {"writers": [{"model": twice_trained.pk}], "max_new_tokens": 16}
    query = f"recipe=generate&dataset={version.dataset_id}:1"
    page = page_html(as_researcher.get(f"/evaluations/new?{query}&at.writers.0.model={twice_trained.pk}"))
    assert "<strong>1 example of tried v1</strong> has its prompt" in page and "in second v1" in page
    row = evaluations.create(team.researcher, recipe="generate", config=config, dataset=version)
    leaks = api.get(f"/evaluations/{row.pk}/leaks").json()["leaks"]
    assert [(leak["train"]["name"], leak["prompts"]) for leak in leaks] == [("second", 1)]
    row.results = {"headline": {"label": "x", "cell": {"kind": "count", "value": 1, "tags": []}}, "coverage": []}
    row.state = "finished"
    row.save()
    assert "1 example of tried v1" in page_html(as_researcher.get(f"/evaluations/{row.pk}"))
    every = evaluations.create(team.researcher, recipe="generate", config={**config, "split": ""}, dataset=version)
    leaks = api.get(f"/evaluations/{every.pk}/leaks").json()["leaks"]
    assert {leak["train"]["name"]: leak["prompts"] for leak in leaks} == {"second": 1, "first": 1}


def test_looking_costs_the_same_whatever_a_model_has_seen(team, launch, twice_trained):
    version = version_of(team.researcher, "next", train=["x"], heldout=[text(1)])

    def queries(model):
        with CaptureQueriesContext(connection) as captured:
            trained_on.leaking(team.workspace.id, version, "sft", {"model": {"name": model}})
        return len(captured)

    queries("once")
    more = [trained(team, launch, version_of(team.researcher, f"m{n}", train=[text(n)]), f"m{n}") for n in range(3)]
    top = RegisteredModel.objects.get(name="once")
    before = queries("once")
    RegisteredModel.objects.filter(pk=top.pk).update(base=more[0])
    assert queries("once") <= before + 2, "one for a generation more"
