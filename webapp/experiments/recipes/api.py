"""Recipes over the API: what a run can do, and what a dataset holds for each."""

from typing import Annotated, Any

from django.http import Http404, HttpRequest
from ninja import Query, Router

from trainer.config import RECIPES, Recipe
from webapp.accounts.access import require
from webapp.core.forms.model_schemas import schema_of

from .. import access, recipe_metrics
from . import choices, gallery, serializers
from .schemas import FitList, RecipeList, RecipeMetricsOut, RecipeOut

router = Router(tags=["recipes"])


@router.get("/recipes", response=RecipeList, summary="The recipes of runs")
def recipes(request: HttpRequest) -> dict[str, Any]:
    access.may_read(require(request))
    return {"items": list(RECIPES.values()), "next": None}


@router.get("/recipes/fit", response=FitList, summary="The data that a dataset has for each recipe")
def recipes_fit(
    request: HttpRequest,
    dataset: Annotated[str, Query(max_length=200, description="Its name, its id, or `<id>:<version>`")],
) -> dict[str, Any]:
    """`fits` is null while a large version is counted: ask again in a minute."""
    membership = access.may_read(require(request))
    version = choices.named_version(membership.workspace_id, dataset)
    if version is None:
        raise Http404("no such dataset")
    return {
        "items": [serializers.card(card) for card in gallery.cards(membership.workspace_id, version)],
        "next": None,
    }


@router.get("/recipes/{name}", response=RecipeOut, summary="One recipe, with its presets")
def recipe(request: HttpRequest, name: str) -> Recipe:
    access.may_read(require(request))
    if name not in RECIPES:
        raise Http404("no such recipe")
    return RECIPES[name]


@router.get("/recipes/{name}/metrics", response=RecipeMetricsOut, summary="The metrics of a recipe")
def metrics_of(request: HttpRequest, name: str) -> dict[str, Any]:
    """Titles, units, help and places of every metric: all that a chart needs."""
    access.may_read(require(request))
    if name not in RECIPES:
        raise Http404("no such recipe")
    return recipe_metrics.metrics(name)


@router.get("/recipes/{name}/schema", response=dict[str, Any], summary="JSON Schema of the config")
def recipe_schema(request: HttpRequest, name: str) -> dict[str, Any]:
    """Defaults, bounds, help (`description`), `unit` and `advanced`: all that a form needs."""
    access.may_read(require(request))
    if name not in RECIPES:
        raise Http404("no such recipe")
    return schema_of(RECIPES[name].schema)
