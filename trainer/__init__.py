"""The machine-learning package: rubrics in, trained policies and numbered events out. It knows nothing of Django."""
