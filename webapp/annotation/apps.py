from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "webapp.annotation"
    label = "annotation"

    def ready(self) -> None:
        """Registers this app's facts of examples for the pages of datasets, and its tasks for the workers."""
        from .agreement import matching  # noqa: F401  registers its jobs
        from .projects import example_facts  # noqa: F401  registers itself
        from .publishing import data_description  # noqa: F401  registers itself
        from .publishing import services as publishing  # noqa: F401  registers its jobs
        from .review import services as review  # noqa: F401  registers its jobs
