from tests.webapp.datasets.conftest import import_rows  # noqa: F401 - a fixture
