"""All writes to projects, their tasks and their answers, one module per concern."""
