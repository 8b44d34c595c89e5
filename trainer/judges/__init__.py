"""Judges: their questions, the models that answer, and the meaning of the answers. It needs no torch, so that the web side can use it."""
