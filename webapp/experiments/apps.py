from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "webapp.experiments"
    label = "experiments"

    def ready(self) -> None:
        """Tells the pages of datasets what this app knows of an example, evaluations what runs have sampled and what
        models were trained on, jobs how checkpoints are exported, and imports how rollouts are gathered."""
        from . import examples, exporting, rollout_datasets, sampled, trained_on  # noqa: F401  they register themselves
