"""Lengths that the database, the importers and the pages share."""

MAX_LABEL = 200  # characters of a key, a domain or a source: short enough for an index
