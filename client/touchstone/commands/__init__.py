"""The commands in groups, such as `touchstone runs`. Each module has the Typer app of a group."""
