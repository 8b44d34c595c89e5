"""The uses of a model, with the address of the form that is filled in for it."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from trainer.config import RECIPES
from trainer.config.recipe import Slot

from ..models import RegisteredModel
from ..trials.outcomes import unscorable

Head = RegisteredModel.Head
SCORES = "reward_model"  # the role of a slot that takes a model with a scalar head too


PURPOSES = {
    "Train it further": ("Base",),
    "Teach another model": ("Teacher",),
    "Reward a run": ("Reward",),
    "Answer and measure": ("Writer", "Reader", "Benchmark", "Scorer"),
    "Judge and write rubrics": ("Judge", "Rubric writer"),
}
"""{purpose: the titles of its uses}, in the order in which people ask."""
OTHER = "Another part of a run"


@dataclass(frozen=True)
class ModelUse:
    title: str
    words: str
    icon: str
    url: str

    @property
    def purpose(self) -> str:
        return next((purpose for purpose, titles in PURPOSES.items() if self.title in titles), OTHER)


def by_purpose(model: RegisteredModel) -> list[tuple[str, list[ModelUse]]]:
    """The uses of the model as (purpose, its uses); purposes without a use are left out."""
    found: dict[str, list[ModelUse]] = {purpose: [] for purpose in (*PURPOSES, OTHER)}
    for use in uses_of(model):
        found[use.purpose].append(use)
    return [(purpose, uses) for purpose, uses in found.items() if uses]


def uses_of(model: RegisteredModel) -> list[ModelUse]:
    """The uses in the order in which people ask: train further, teach, reward, answer or score a dataset, judge, write rubrics."""
    found = [
        _in_run(model, recipe.name, recipe.title, slot)
        for recipe in RECIPES.values()
        for slot in recipe.slots
        if slot.kind == "model" and _suits(model, slot)
    ]
    found += _in_evaluations(model)
    if model.head == Head.LM:
        local = reverse("endpoint_new") + "?" + urlencode({"kind": "local", "registered_model": model.pk})
        found.append(ModelUse("Judge", "an endpoint that a judge asks", "scale", local))
        found.append(ModelUse("Rubric writer", "an endpoint that a judge of rubrics asks", "pencil", local))
    return found


def _suits(model: RegisteredModel, slot: Slot) -> bool:
    """If the slot may put a head that scores on the model, the model's architecture must have a path for it."""
    if model.head == Head.LM:
        return not unscorable(model, slot.heads)
    return slot.role == SCORES


def _in_evaluations(model: RegisteredModel) -> list[ModelUse]:
    """Each form has the model as the first of its list."""
    if model.head == Head.LM:
        address = f"{reverse('evaluation_new')}?{urlencode({'recipe': 'generate', 'at.writers.0.model': model.pk})}"
        likely = f"{reverse('weights_new')}?{urlencode({'kind': 'logprobs', 'model': model.pk})}"
        return [
            ModelUse("Writer", "answers a dataset’s prompts", "list-plus", address),
            ModelUse("Reader", "how likely a dataset’s responses are", "chart-no-axes-column", likely),
        ]
    address = f"{reverse('evaluation_new')}?{urlencode({'recipe': 'reward_benchmark', 'at.models.0.model': model.pk})}"
    scores = f"{reverse('weights_new')}?{urlencode({'kind': 'score', 'model': model.pk})}"
    return [
        ModelUse("Benchmark", "RM-Bench, RewardBench 2 and their like", "trophy", address),
        ModelUse("Scorer", "scores a dataset’s responses", "chart-no-axes-column", scores),
    ]


def _in_run(model: RegisteredModel, recipe: str, title: str, slot: Slot) -> ModelUse:
    """The kind of a part comes before the model in the address, because the kind decides which fields the part has."""
    words = {"base": "Base", "teacher": "Teacher", SCORES: "Reward"}
    path = slot.path.replace("*", "0")
    given = {"recipe": recipe}
    if slot.when:
        owner = path.rpartition(".")[0]
        given[f"at.{owner}.{slot.when[0]}" if owner else f"at.{slot.when[0]}"] = slot.when[1][0]
    given[f"at.{path}"] = model.name
    return ModelUse(
        words.get(slot.role, slot.role.capitalize()), title, "play", f"{reverse('run_new')}?{urlencode(given)}"
    )
