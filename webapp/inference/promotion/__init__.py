"""The choice of the model to use: aliases that move from model to model, stages, and the history of both."""
