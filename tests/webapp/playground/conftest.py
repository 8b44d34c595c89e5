"""The small dataset of the runs' tests."""

from tests.webapp.experiments.conftest import *  # noqa: F403
