"""What a model can be used as, and the form that is then filled in."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from trainer.config import RECIPES
from trainer.config.recipe import Slot

from . import training
from .models import RegisteredModel

Head = RegisteredModel.Head
SCORES = "reward_model"  # the role of a slot that takes a model with a scalar head too


@dataclass(frozen=True)
class Use:
    title: str
    words: str
    icon: str
    url: str


def of(model: RegisteredModel) -> list[Use]:
    """In the order in which people ask: train further, teach, reward, answer or score a dataset, judge, write rubrics."""
    found = [
        _in_run(model, recipe.name, recipe.title, slot)
        for recipe in RECIPES.values()
        for slot in recipe.slots
        if slot.kind == "model" and _suits(model, slot)
    ]
    found += _in_evaluations(model)
    if model.head == Head.LM:
        local = reverse("endpoint_new") + "?" + urlencode({"kind": "local", "registered_model": model.pk})
        found.append(Use("Judge", "an endpoint that a judge asks", "scale", local))
        found.append(Use("Rubric writer", "an endpoint that a judge of rubrics asks", "pencil", local))
    return found


def _suits(model: RegisteredModel, slot: Slot) -> bool:
    """Where a head that scores may be put on the model, its architecture must take one."""
    if model.head == Head.LM:
        return not training.unscorable(model, slot.heads)
    return slot.role == SCORES


def _in_evaluations(model: RegisteredModel) -> list[Use]:
    """Each form takes the model as the first of its list."""
    if model.head == Head.LM:
        address = f"{reverse('evaluation_new')}?{urlencode({'recipe': 'generate', 'at.writers.0.model': model.pk})}"
        likely = f"{reverse('weights_new')}?{urlencode({'kind': 'logprobs', 'model': model.pk})}"
        return [
            Use("Writer", "answers a dataset’s prompts", "list-plus", address),
            Use("Reader", "how likely a dataset’s responses are", "chart-no-axes-column", likely),
        ]
    address = f"{reverse('evaluation_new')}?{urlencode({'recipe': 'reward_benchmark', 'at.models.0.model': model.pk})}"
    scores = f"{reverse('weights_new')}?{urlencode({'kind': 'score', 'model': model.pk})}"
    return [
        Use("Benchmark", "RM-Bench, RewardBench 2 and their like", "trophy", address),
        Use("Scorer", "scores a dataset’s responses", "chart-no-axes-column", scores),
    ]


def _in_run(model: RegisteredModel, recipe: str, title: str, slot: Slot) -> Use:
    """What must be chosen beside the model comes first in the address: the fields of a part follow from its kind."""
    words = {"base": "Base", "teacher": "Teacher", SCORES: "Reward"}
    path = slot.path.replace("*", "0")
    given = {"recipe": recipe}
    if slot.when:
        owner = path.rpartition(".")[0]
        given[f"at.{owner}.{slot.when[0]}" if owner else f"at.{slot.when[0]}"] = slot.when[1][0]
    given[f"at.{path}"] = model.name
    return Use(words.get(slot.role, slot.role.capitalize()), title, "play", f"{reverse('run_new')}?{urlencode(given)}")
