import pytest

from trainer.config import RECIPES as RUNS
from webapp.core.forms.model_schemas import schema_of
from webapp.evaluation.recipes import RECIPES as EVALUATIONS


@pytest.mark.parametrize("recipe", [*RUNS.values(), *EVALUATIONS.values()], ids=lambda recipe: recipe.schema.__name__)
def test_a_schema_that_somebody_changed_is_not_the_next_ones(recipe):
    made = recipe.schema.model_json_schema()
    first = schema_of(recipe.schema)
    assert first == made and list(first["properties"]) == list(made["properties"])
    first["properties"].clear()
    assert schema_of(recipe.schema) == made
