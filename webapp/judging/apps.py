from django.apps import AppConfig


class JudgingConfig(AppConfig):
    name = "webapp.judging"
    label = "judging"

    def ready(self) -> None:
        """Tells the workers that a judge can be asked about a project's tasks, and by jobs of the cluster; and projects that one
        can decide in stress tests."""
        from .services import stressing, suggesting, weighing  # noqa: F401  register their jobs
