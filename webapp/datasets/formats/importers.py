"""Importers: one module per format, one plain registry.

To add one: write a module with an `IMPORTER`, name it in `_MODULES`, and mirror it in tests/webapp/datasets/formats.
A format is recognised by the columns of its rows: `knows` must not be sure of rows that belong to another format.
"""

from pathlib import Path

from webapp.files.bundle import Bundle
from webapp.files.records import FileHead

from . import (
    argilla,
    biggen,
    followbench,
    helpsteer3,
    hh_rlhf,
    judgebench,
    label_studio,
    lm_eval,
    openai_evals,
    pandalm,
    paperbench,
    potato,
    prometheus,
    rewardbench,
    rm_bench,
    table,
    ukpconvarg,
    ultrafeedback,
    writingbench,
)
from .base_importer import Importer
from .convert import Mapping, MappingOf
from .environments import read as environments
from .healthbench import read as healthbench
from .ifbench import read as ifbench
from .rubricbench import read as rubricbench
from .touchstone import read as touchstone
from .traces import anthropic, inspect, openai, opentelemetry
from .trainers import conversations, preferences, prompts

_MODULES = (
    touchstone,
    preferences,
    healthbench,
    hh_rlhf,
    pandalm,
    judgebench,
    followbench,
    ifbench,
    writingbench,
    biggen,
    prometheus,
    paperbench,
    ukpconvarg,
    rubricbench,
    helpsteer3,
    ultrafeedback,
    rewardbench,
    rm_bench,
    openai,
    anthropic,
    inspect,
    opentelemetry,
    conversations,
    prompts,
    environments,
    label_studio,
    argilla,
    potato,
    openai_evals,
    lm_eval,
    table,
)
REGISTRY: dict[str, Importer] = {module.IMPORTER.name: module.IMPORTER for module in _MODULES}
touchstone.IMPORTERS.update(REGISTRY)
TRACES = frozenset(module.IMPORTER.name for module in (openai, anthropic, inspect, opentelemetry))


def head_of(path: Path, name: str) -> FileHead:
    """The first readable rows of the file. Raises OSError."""
    bundle = Bundle(path, name)
    return bundle.head(bundle.names[0]) if bundle.names else FileHead(name, ())


def detect(head: FileHead) -> Importer:
    """The importer with the highest confidence; the plain table if none knows the file."""
    return max(REGISTRY.values(), key=lambda importer: importer.sniff(head))


def recognise(bundle: Bundle) -> Importer:
    """The importer of a file, or of most files of a folder or archive; a specific one goes before the plain table."""
    found = [detect(bundle.head(name)) for name in bundle.names]
    known = [importer for importer in found if importer is not table.IMPORTER]
    return max(known, key=known.count) if known else table.IMPORTER


def chosen(bundle: Bundle, name: str) -> Importer:
    """The importer that somebody chose. For a file that an export of ours wrote in this layout, it is the one that also reads what the
    layout has no place for."""
    ours = any(touchstone.wrote(row, name) for file in bundle.names for row in bundle.head(file).rows)
    return touchstone.IMPORTER if ours else REGISTRY[name]


def files_for(bundle: Bundle, importer: Importer) -> tuple[str, ...]:
    """The files whose rows become examples: of several, those of this format that do not only add to another one."""
    if bundle.is_single:
        return bundle.names
    heads = [bundle.head(name) for name in bundle.names]
    mine = [head for head in heads if importer.sniff(head) >= detect(head).sniff(head) > 0]
    whole = [head for head in mine if not all(map(importer.aside, head.rows))]
    # somebody chose a format that no file has: the problem of each row then says why
    return tuple(head.name for head in whole or mine) or bundle.names


def mapping_of(importer: Importer, bundle: Bundle, name: str, given: Mapping) -> MappingOf:
    """The mapping by which each row of the file `name` is read: the one that somebody gave for all files, or the guess from the file's own
    columns. Preview and import both ask here. Raises OSError."""
    if given or not importer.mappable:
        return lambda row: given
    return importer.mapping_of(bundle.head(name))
