"""Measurements. Each module prints a table with the machine and, as its last line, `{name: {ours, peer, unit, ratio}}`."""
