"""Kills every process of a running installation while people, an import, a judge and two runs work, and counts what is lost."""
