from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "webapp.annotation"
    label = "annotation"

    def ready(self) -> None:
        """Tells the pages of datasets what this app knows of an example, and the workers what there is to do."""
        from . import examples  # noqa: F401  registers itself
        from .services import matching, publish, review  # noqa: F401  register their jobs
