"""Which worker runs which test: those of a file together, for they share what is made once; those of a long file apart."""

from xdist.scheduler import LoadFileScheduling

APART = {"tests/webapp/test_api_fuzz.py", "tests/webapp/test_api_roles.py"}  # hundreds of tests that share nothing


class Spreading(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return nodeid if file in APART else file
