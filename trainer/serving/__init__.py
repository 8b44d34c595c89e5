"""A model that people try: one process holds its weights, answers over a socket token by token, and ends when it is idle."""
