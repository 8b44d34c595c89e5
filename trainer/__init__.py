"""The machine-learning package: it takes rubrics and examples, and gives trained policies and numbered events. It knows nothing of Django."""
