"""The Django project: what people and scripts see."""
