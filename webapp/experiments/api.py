"""Recipes, experiments and runs over the API. Reading needs the role reviewer, changing anything researcher."""

from importlib import import_module

from ninja import Router

from .parameters import router as runs
from .recipes.api import router as recipes

# Each room adds its operations to the router of runs. The busiest come first; `/runs/compare` has to stand before `/runs/{run_id}`.
for _room in (
    "runs",
    "live",
    "metrics",
    "charts",
    "rollouts",
    "notes",
    "lifecycle",
    "launch",
    "after",
    "repeats",
    "rewards",
    "people",
    "alarms",
    "outputs",
    "outputs.retention",
):
    import_module(f".{_room}.api", __package__)

router = Router()
router.add_router("", runs)
router.add_router("", recipes)
