"""The settings of a curation job in words, which distinguish two jobs of one kind."""

from typing import Any

from ..curation import model_measures
from ..models import CurationJob, DatasetVersion


def in_words(job: CurationJob) -> str:
    """The settings in a few words; empty if the kind has none, or if an earlier version of this program did not store them."""
    try:
        return _words(job, job.params)
    except KeyError:
        return ""


def _words(job: CurationJob, params: dict[str, Any]) -> str:
    match job.kind:
        case CurationJob.Kind.DUPLICATES:
            what = "prompts" if params["scope"] == "prompt" else "prompts and responses"
            return f"{what}, {_alike(params['threshold'])}"
        case CurationJob.Kind.LEAKS:
            return _alike(params["threshold"])
        case CurationJob.Kind.SHORTEST:
            return f"{params['share']:.0%} are removed"
        case CurationJob.Kind.BALANCE:
            return f"drawn with seed {params['seed']}"
        case CurationJob.Kind.HARDEST:
            return f"{_hard(job.version, params)}; {params['share']:.0%} are removed"
        case CurationJob.Kind.COVER:
            weighed = f"weighed by what is {_hard(job.version, params)}" if params["log_probs"] else "by distance alone"
            return f"{_measured(job.version, 'embeddings', params)}; {weighed}; {params['share']:.0%} are kept"
        case CurationJob.Kind.MEANING:
            return f"{_measured(job.version, 'embeddings', params)}; from a cosine of {params['likeness']:g}"
        case CurationJob.Kind.FAULTY:
            return f"faults below {100 * params['below']:.3g}%"
        case _:
            return ""


def _alike(threshold: float) -> str:
    return "the same words only" if threshold == 1 else f"{threshold:.0%} alike"


def _hard(version: DatasetVersion, params: dict[str, Any]) -> str:
    measured = _measured(version, "log_probs", params)
    return f"hard by {measured}, in windows of {params['window']:,} tokens"


def _measured(version: DatasetVersion, kind: model_measures.Kind, params: dict[str, Any]) -> str:
    """The job that measured the numbers; by its title, if the version still has it."""
    title = next((each.title for each in model_measures.offers(version)[kind] if each.job == params[kind]), "")
    return f"{title} (job {params[kind]})" if title else f"job {params[kind]}"
