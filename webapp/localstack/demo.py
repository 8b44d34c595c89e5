"""The owner of the demo and the place of its model: the step that makes the model and the step that registers it agree here."""

from pathlib import Path

from django.conf import settings

EMAIL = "demo@localhost"
MODEL_NAME = "smollm2-135m-instruct"  # the config's default
MODEL_DIR = Path(settings.VAR) / "models" / MODEL_NAME
