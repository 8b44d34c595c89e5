"""Properties of measures are tried with few resamples."""

from functools import partial

import pytest
from hypothesis import is_hypothesis_test

from trainer.metrics import estimate

DRAWS = 50


@pytest.fixture(autouse=True)
def few_resamples(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A property is tried on a hundred inputs, and holds for any number of resamples. A thousand for each took most of the time."""
    if is_hypothesis_test(request.function):
        for name in ("resamples", "resampled_kinds"):
            monkeypatch.setattr(estimate, name, partial(getattr(estimate, name), draws=DRAWS))
