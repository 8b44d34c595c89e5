from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "webapp.experiments"
    label = "experiments"

    def ready(self) -> None:
        """Tells the pages of datasets what this app knows of an example, and evaluations what runs have sampled."""
        from . import examples, sampled  # noqa: F401  they register themselves
