"""The Django project: what people and scripts see."""

from trainer.garbage import look_rarely

look_rarely()  # here, because it must happen before Django loads the apps, in whichever way a process starts
