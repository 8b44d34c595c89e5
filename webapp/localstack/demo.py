"""Whose the demo is and where its model lies: the step that makes it and the step that registers it agree here."""

from pathlib import Path

from django.conf import settings

EMAIL = "demo@localhost"
MODEL_NAME = "smollm2-135m-instruct"  # the config's default
MODEL_DIR = Path(settings.VAR) / "models" / MODEL_NAME
