"""Datasets over the API, one module for each kind of operation."""

from ninja import Router

from . import datasets, explore, export, probes, versions

router = Router(tags=["datasets"])
for _part in (datasets, versions, explore, probes, export):
    router.add_router("", _part.router)
