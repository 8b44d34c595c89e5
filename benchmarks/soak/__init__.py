"""An hour of everything at once: does anything grow, slow down or lose its connection? See `__main__`."""
