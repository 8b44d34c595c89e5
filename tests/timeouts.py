"""How long tests wait for an event that must come. Only a failing test waits so long, and a busy machine must not make a test fail."""

SECONDS = 60.0
