"""Which model is the one to use: aliases that move from model to model, stages, and the history of both."""
