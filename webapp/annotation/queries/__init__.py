"""Reads, one module per page."""
