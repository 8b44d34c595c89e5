"""Asynchronous training on a virtual clock, scheduled by the code that schedules real runs."""
