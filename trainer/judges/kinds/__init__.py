"""Kinds of judges, one module per family. `trainer.judges.spec` lists them."""
