"""Shared fixtures. The database comes from DATABASE_URL, or from the embedded server under var/."""
