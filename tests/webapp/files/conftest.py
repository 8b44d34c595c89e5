from tests.webapp.datasets.conftest import importing  # noqa: F401 - a fixture
