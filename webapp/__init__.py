"""The Django project: what people and scripts see."""

from trainer.garbage import look_rarely

look_rarely()  # here, for whatever a process begins with, this comes before Django loads the apps
