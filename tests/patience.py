"""How long tests wait for what must come: only a test that fails waits so long, and a busy machine is no reason to fail."""

SECONDS = 60.0
