from django.apps import AppConfig


class JudgingConfig(AppConfig):
    name = "webapp.judging"
    label = "judging"

    def ready(self) -> None:
        """Tells the workers that a judge can be asked about a project's tasks."""
        from .services import suggesting  # noqa: F401  registers its job
