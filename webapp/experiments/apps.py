from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "webapp.experiments"
    label = "experiments"

    def ready(self) -> None:
        """Tells the pages of datasets what this app knows of an example."""
        from . import examples  # noqa: F401  registers itself
