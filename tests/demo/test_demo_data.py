"""The shipped demo data matches its README, and its rubrics give nothing to an empty answer."""

from collections import Counter
from pathlib import Path
from statistics import mean

import pytest

from trainer.contracts import Example
from trainer.rubrics import score_rubric
from trainer.verifiers import check_spec
from webapp.annotation.models import Task
from webapp.annotation.work import inbox
from webapp.inference.models import Endpoint
from webapp.localstack.demo import MODEL_NAME
from webapp.localstack.management.commands import demo

DEMO = Path(__file__).parents[2] / "demo"


def read(name: str) -> list[Example]:
    return [Example.model_validate_json(line) for line in (DEMO / name).read_text(encoding="utf-8").split("\n") if line]


PROMPTS = read("prompts.jsonl")
JUDGED = read("judged.jsonl")
PREFERENCES = read("preferences.jsonl")
EMPTY_ANSWERS = (
    "",
    "Yes.",
    "This is a thing.",
    "I can help you with that.",
    "You can do this with your own hands today.",
    "- one\n- two\n- three",
)


def test_eighty_prompts_train_and_forty_are_held_out():
    assert Counter(example.split for example in PROMPTS) == {"train": 80, "heldout": 40}


def test_no_key_and_no_prompt_occurs_twice():
    everything = PROMPTS + JUDGED + PREFERENCES
    assert len({example.key for example in everything}) == len(everything)
    prompts = [" ".join(example.prompt[-1].content.casefold().split()) for example in everything]
    assert len(set(prompts)) == len(prompts)


def test_every_family_has_prompts_in_both_splits():
    train = Counter(example.tags[0] for example in PROMPTS if example.split == "train")
    heldout = Counter(example.tags[0] for example in PROMPTS if example.split == "heldout")
    assert train.keys() == heldout.keys()
    assert min(heldout.values()) >= 3


def test_domains_are_varied():
    assert len({example.domain for example in PROMPTS}) >= 12


def test_rubrics_have_four_to_eight_criteria_of_both_kinds_and_signs_all_with_verifiers():
    for example in PROMPTS:
        criteria = example.rubric.criteria
        assert 4 <= len(criteria) <= 8, example.key
        assert {criterion.kind for criterion in criteria} == {"hard", "principle"}, example.key
        assert min(criterion.points for criterion in criteria) < 0, example.key
        for criterion in criteria:
            assert (criterion.importance == "pitfall") == (criterion.points < 0), (example.key, criterion.id)
            check_spec(criterion.verifier)


def test_prompts_are_short():
    for example in PROMPTS:
        assert 10 <= len(example.prompt[-1].content.split()) <= 45, example.key


def test_references_score_high_and_beat_empty_talk_and_a_copy_of_the_prompt():
    for example in PROMPTS:
        reference = score_rubric(example.rubric, example.reference)
        assert reference.score is not None and reference.score >= 0.9, (example.key, reference.verdicts)
        for text in (*EMPTY_ANSWERS, example.prompt[-1].content):
            empty = score_rubric(example.rubric, text)
            assert empty.score is not None and empty.score <= reference.score - 0.25, (example.key, text)


@pytest.mark.parametrize("text", EMPTY_ANSWERS)
def test_a_constant_answer_earns_little_on_average(text):
    assert mean(score_rubric(example.rubric, text).score for example in PROMPTS) < 0.3


def test_judged_prompts_belong_to_no_split_and_get_no_training_score():
    for example in JUDGED:
        assert example.split is None
        assert score_rubric(example.rubric, "Any text.").score is None


def test_preferences_cover_both_directions_ties_and_refusals_to_choose():
    given = [preference for example in PREFERENCES for preference in example.preferences]
    strengths = Counter(preference.strength for preference in given)
    assert len(given) >= 40
    assert {-3, -2, -1, 0, 2, 3, None} <= strengths.keys()
    first = sum(n for strength, n in strengths.items() if strength is not None and strength < 0)
    second = sum(n for strength, n in strengths.items() if strength is not None and strength > 0)
    assert 0.4 <= first / (first + second) <= 0.6


def test_every_preference_has_reasons_whose_spans_lie_in_their_response():
    for example in PREFERENCES:
        texts = {response.id: response.text for response in example.responses}
        for preference in example.preferences:
            assert preference.reasons, example.key
            for reason in preference.reasons:
                if reason.end is not None:
                    assert reason.end <= len(texts[reason.response]), example.key


@pytest.mark.django_db
def test_the_projects_open_with_tasks_and_the_owner_and_only_once():
    for _ in range(2):
        membership = demo.owner()
        demo.import_dataset(membership, "Demo preferences", DEMO / "preferences.jsonl")
        demo.open_projects(membership)
    waiting = inbox.projects_with_work(membership)
    assert [(each.project.kind, each.project.state, each.waits) for each in waiting] == [
        ("pairwise", "open", True),
        ("rubric", "open", True),
    ]
    pairwise = waiting[0].project
    assert Task.objects.filter(project=pairwise, overlap=None).count() == demo.GOLD
    assert pairwise.guidelines.get().text.startswith("## What to judge")


@pytest.mark.django_db
def test_a_first_judge_has_somebody_to_ask(monkeypatch, tmp_path):
    """The second start of the product changes nothing."""
    for name in ("config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    monkeypatch.setattr(demo, "MODEL_DIR", tmp_path)
    membership = demo.owner()
    for _ in range(2):
        demo.register_model(membership)
    endpoint = Endpoint.objects.get(workspace=membership.workspace)
    assert endpoint.kind == Endpoint.Kind.LOCAL and endpoint.registered_model.name == MODEL_NAME
