"""Recipes as JSON."""

from typing import Any

from .gallery import RecipeCard


def card(found: RecipeCard) -> dict[str, Any]:
    """A recipe, and what a version has for it."""
    needs = [
        {
            "count": each.need.count,
            "words": each.need.words,
            "train": each.train,
            "heldout": each.heldout,
            "left_out": [{"count": count, "words": words} for count, words in each.left_out],
        }
        for each in (found.fit.needs if found.fit else ())
    ]
    step_s = found.pace.step_s if found.pace else None
    return {"recipe": found.recipe.name, "fits": found.fit.ok if found.fit else None, "needs": needs, "step_s": step_s}
