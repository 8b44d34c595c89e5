"""The documentation inside the product: the files of `docs/` as pages, and as Markdown for programs. There are no rows."""
