"""Pages, one module per concern."""
