"""A model that is tried: one process holds its weights, answers over a socket token by token, and ends when nobody asks."""
