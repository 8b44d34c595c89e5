"""Does a paper's central claim hold here? Each plan (`trainer.metrics.claims`) runs the comparison behind it and writes a
verdict with intervals.

`python -m trainer claims NAME --size tiny|demo`; see docs/claims.md.
"""
