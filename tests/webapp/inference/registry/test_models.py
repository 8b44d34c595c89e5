"""The registry over the API and on its pages: the facts, origin, uses and files of a model."""

import io
import re
import tarfile
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.pages import page_html
from tests.team import ApiClient
from trainer import model_card
from trainer.config import RECIPES, resolve
from trainer.outputs import About
from webapp.inference import queries
from webapp.inference.endpoints import services as endpoints
from webapp.inference.endpoints import targets
from webapp.inference.folders import files
from webapp.inference.models import RegisteredModel
from webapp.inference.registry import uses

pytestmark = pytest.mark.django_db


@pytest.fixture
def base(team):
    return RegisteredModel.objects.create(workspace=team.workspace, name="base", source="hub", path="o/base")


@pytest.fixture
def trained(team, base, tmp_path):
    folder = tmp_path / "policy"
    folder.mkdir()
    (folder / "adapter_model.safetensors").write_bytes(b"w" * 700)
    (folder / "README.md").write_text("---\nbase_model: base\n---\n# The card\n\nA <script>x</script> table.\n")
    return RegisteredModel.objects.create(
        workspace=team.workspace,
        name="trained",
        source="run",
        path=str(folder),
        base=base,
        format="peft",
        role="policy",
    )


def test_a_model_says_what_it_is(api, trained, base):
    found = api.get(f"/models/{trained.id}").json()
    assert (found["role"], found["format"], found["head"]) == ("policy", "peft", "lm")
    assert found["base"] == {"id": base.id, "name": "base"}
    assert found["present"] is True and found["run"] is None
    assert api.get(f"/models/{base.id}").json()["present"] is None


def test_a_model_is_renamed_and_a_taken_name_is_refused(api, trained, base):
    assert api.patch(f"/models/{trained.id}", {"name": " Our  best "}).json()["name"] == "Our best"
    refused = api.patch(f"/models/{trained.id}", {"name": "base"})
    assert refused.status_code == 422 and refused.json()["error"]["fields"][0]["path"] == "name"
    assert RegisteredModel.objects.get(id=trained.id).name == "Our best"
    assert api.patch(f"/models/{trained.id}", {"description": "d"}).json()["name"] == "Our best"


def test_an_archived_model_is_offered_no_longer(api, trained, team):
    assert api.post(f"/models/{trained.id}/archive").json()["archived_at"]
    assert "trained" not in [item["name"] for item in api.get("/models").json()["items"]]
    assert [item["name"] for item in api.get("/models?archived=true").json()["items"]] == ["trained"]
    assert trained not in queries.usable(team.workspace.id)
    assert api.post(f"/models/{trained.id}/restore").json()["archived_at"] is None
    assert trained in queries.usable(team.workspace.id)


def test_the_folder_is_downloaded_and_goes_on_where_it_broke(api, trained):
    answer = api.client.get(f"/api/v1/models/{trained.id}/download")
    content = b"".join(answer.streaming_content)
    assert answer["Content-Disposition"] == 'attachment; filename="trained.tar"'
    rest = api.client.get(f"/api/v1/models/{trained.id}/download", headers={"Range": "bytes=1000-"})
    assert content[:1000] + b"".join(rest.streaming_content) == content
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert tar.getnames() == ["trained/README.md", "trained/adapter_model.safetensors"]


def test_files_that_are_gone_say_so(api, trained, as_researcher, tmp_path):
    (tmp_path / "policy").rename(tmp_path / "moved")
    gone = api.get(f"/models/{trained.id}/download")
    assert gone.status_code == 410 and "no folder" in gone.json()["error"]["message"]
    page = as_researcher.get(f"/models/{trained.id}").content.decode()
    assert "Its files are gone" in page and "Use as" not in page


def test_a_model_from_elsewhere_is_not_sent(api, base):
    assert api.get(f"/models/{base.id}/download").status_code == 409


def test_annotators_and_outsiders_get_no_weights(trained, team):
    path = f"/models/{trained.id}/download"
    assert ApiClient(team.annotator).get(path).status_code == 403
    assert ApiClient(team.outsider).get(path).status_code == 404


def test_the_page_shows_the_card_without_its_scripts(as_researcher, trained):
    page = as_researcher.get(f"/models/{trained.id}").content.decode()
    assert "The card" in page and "<script>x" not in page and "base_model" not in page
    assert f'href="/models/{trained.id}/download"' in page


def test_the_config_of_a_card_is_folded_and_what_differs_from_the_recipe_comes_first(as_researcher, trained, tmp_path):
    config = resolve("policy", dict(RECIPES["policy"].example)).model_dump(mode="json")
    plain = dict(config)
    config["steps"] = 7777
    about = About("policy", "policy", "policy", 3, "base", config=config, metrics={"eval/score": 0.5})
    card = tmp_path / "policy" / "README.md"
    card.write_text(model_card.card(about, "peft"))
    page = page_html(as_researcher.get(f"/models/{trained.id}"))
    section = page.partition('aria-labelledby="config"')[2].partition("</section>")[0]
    first, _, folded = section.partition("<details")
    assert "<code>steps</code>" in first and "7777" in first and "All values" in folded
    assert page.count('"steps": 7777') == 0 and folded.count("&quot;steps&quot;: 7777") == 1
    differing = len(re.findall("<dt>", first))
    assert 0 < differing < len(plain), "most values are defaults"
    for unread in ("not json", "[" * 3_000):
        card.write_text(f"# Card\n\n## Config\n\n```json\n{unread}\n```\n")
        assert 'aria-labelledby="config"' not in page_html(as_researcher.get(f"/models/{trained.id}"))


def test_the_config_of_a_card_is_its_last_section_of_that_name():
    """Only one place is tried: a card may have thousands of them."""
    section = '\n## Config\n\n```json\n{"steps": %d}\n```\n'
    text, config = files.card_parts("# Card\n" + section % 1 + "\n## Config\n" * 3 + "Read on.\n" + section % 2)
    assert config == {"steps": 2} and text.endswith("Read on.") and '{"steps": 1}' in text


def test_a_base_that_is_built_upon_stays(api, trained, base):
    refused = api.delete(f"/models/{base.id}")
    assert refused.status_code == 409 and refused.json()["error"]["code"] == "in_use"


def test_every_use_leads_to_a_form_that_is_filled_in(as_researcher, trained):
    found = uses.uses_of(trained)
    assert {"Base", "Teacher", "Judge", "Rubric writer"} <= {use.title for use in found}
    teachers = [parse_qs(urlsplit(use.url).query) for use in found if use.title == "Teacher"]
    teaching = {query["recipe"][0]: query for query in teachers}
    assert teaching["policy"]["at.objective.name"] == ["distill"]
    assert teaching["policy"]["at.objective.teacher"] == ["trained"]
    for use in found:
        assert "trained" in as_researcher.get(use.url).content.decode(), use.words
    judge = as_researcher.get(next(use.url for use in found if use.title == "Judge")).content.decode()
    assert f'<option value="{trained.id}" selected>trained</option>' in judge


@pytest.mark.parametrize("head", ["lm", "scalar"])
def test_the_text_of_each_link_says_for_what_the_model_is_used(as_researcher, trained, head):
    """A screen reader lists links without the text around them. In an earlier version, a dozen of them were "Base"."""
    trained.head = head
    trained.save()
    page = " ".join(as_researcher.get(f"/models/{trained.id}").content.decode().split())
    card = page.partition('id="uses"')[2].partition("</section>")[0]
    names = [re.sub(r"<[^>]+>", "", text) for text in re.findall(r"<a [^>]+>(.*?)</a>", card)]
    assert len(names) == len(uses.uses_of(trained)) and len(set(names)) == len(names)
    assert ("Base: Policy from rubrics" if head == "lm" else "Reward: Policy from rubrics") in names


@pytest.mark.parametrize("head", ["lm", "scalar"])
def test_the_uses_are_folded_by_their_purpose(as_researcher, trained, head):
    """Two dozen links stood above the lineage of a model."""
    trained.head = head
    trained.save()
    page = page_html(as_researcher.get(f"/models/{trained.id}"))
    card = page.partition('id="uses"')[2].partition("</section>")[0]
    folds = re.findall(
        r"<details([^>]*)>\s*<summary>(.*?)<span[^>]*>(\d+)</span></summary>(.*?)</details>", card, re.DOTALL
    )
    purposes = {
        "lm": [
            "Train it further",
            "Teach another model",
            "Reward a run",
            "Answer and measure",
            "Judge and write rubrics",
        ],
        "scalar": ["Reward a run", "Answer and measure"],
    }[head]
    assert [words.strip() for _, words, _, _ in folds] == purposes
    assert all("open" not in given and inside.count("<a ") == int(count) for given, _, count, inside in folds)
    assert sum(int(count) for _, _, count, _ in folds) == len(uses.uses_of(trained))


def test_a_reward_model_is_not_offered_where_text_is_written(team, trained, api):
    trained.head = "scalar"
    trained.save()
    assert {use.title for use in uses.uses_of(trained)} <= {"Reward", "Benchmark", "Scorer"}
    refused = api.post("/endpoints", {"name": "e", "kind": "local", "registered_model": trained.id})
    assert refused.status_code == 422 and "scores texts" in str(refused.json())


@pytest.mark.parametrize("recipe", ["policy", "iterative_dpo"])
def test_a_reward_model_is_filled_in_as_the_reward(as_researcher, trained, recipe):
    """The part had another kind before, which has no such field, so the form opened without the field."""
    trained.head = "scalar"
    trained.save()
    (url,) = [use.url for use in uses.uses_of(trained) if use.title == "Reward" and f"recipe={recipe}&" in use.url]
    answer = as_researcher.get(url)
    assert answer.context["form"].raw["rewards"] == [{"kind": "reward_model", "model": "trained"}]
    select = answer.content.decode().partition('id="f-rewards-0-model"')[2].partition("</select>")[0]
    assert '<option value="trained" selected>' in select


def test_a_judge_with_an_adapter_loads_its_base_first(team, trained, base):
    endpoint = endpoints.create_endpoint(team.researcher, "local", name="ours", registered_model=trained.id)
    target = targets.local_target(endpoint, yes_no=True, wording="")
    assert (target.model, target.adapters) == ("o/base", (trained.path,))


def test_a_form_is_filled_only_with_short_plain_texts(as_researcher):
    for query in (
        "at.model.name.x.y=1",
        "at.=x",
        "at.model=x",
        "at.steps=999",
        "at.model.name=" + "x" * 300,
        "at.a.0=x",
    ):
        assert as_researcher.get(f"/runs/new?recipe=policy&{query}").status_code == 200, query


def test_an_adapter_that_was_downloaded_says_with_stock_peft_what_it_says_here(api, team, tmp_path):
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import AutoModelForCausalLM

    from trainer.inference.adapters import load_merged
    from trainer.inference.models import make_tiny

    make_tiny(tmp_path / "tiny")
    torch.manual_seed(0)
    config = LoraConfig(r=4, target_modules=["q_proj", "down_proj"], init_lora_weights=False)
    get_peft_model(AutoModelForCausalLM.from_pretrained(tmp_path / "tiny"), config).save_pretrained(tmp_path / "a")
    rows = RegisteredModel.objects
    tiny = rows.create(workspace=team.workspace, name="t", source="local", path=str(tmp_path / "tiny"))
    row = rows.create(
        workspace=team.workspace, name="a", source="run", path=str(tmp_path / "a"), base=tiny, format="peft"
    )
    sent = b"".join(api.client.get(f"/api/v1/models/{row.id}/download").streaming_content)
    with tarfile.open(fileobj=io.BytesIO(sent)) as tar:
        tar.extractall(tmp_path / "home", filter="data")
    stock = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tiny.path), tmp_path / "home" / "a")
    source = queries.source(row)
    ours = load_merged(tmp_path / "tiny", [tmp_path / "a"])
    assert (source.path, source.adapters) == (tiny.path, (row.path,))
    given = torch.arange(10, 20)[None]
    with torch.no_grad():
        told = [model.generate(input_ids=given, do_sample=False, max_new_tokens=12).tolist() for model in (stock, ours)]
    assert told[0] == told[1]
