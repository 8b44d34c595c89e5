"""Traces of agents, as the programs that run agents keep them: each becomes an example with one response of several steps."""
