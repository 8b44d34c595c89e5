"""Judges: what is asked, of whom, and what the answer means. Free of torch, so that the web side may use it."""
