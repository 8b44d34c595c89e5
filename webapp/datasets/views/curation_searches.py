"""The cards of the page *Curate*: what each searches for, its fields, and the problems of their values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webapp.core.problems import Invalid

from ..curation.model_measures import Kind, Offer

_ALIKE = (("0.9", "90% alike"), ("0.8", "80% alike"), ("0.7", "70% alike"))
_GOES = (("0.25", "A quarter"), ("0.5", "Half"), ("0.75", "Three quarters"))


@dataclass(frozen=True)
class SearchField:
    """A field of a card. A person chooses its value if there are `options` or `offers` of finished jobs, and types it otherwise."""

    name: str
    label: str
    default: str = ""
    options: tuple[tuple[str, str], ...] = ()
    offers: Kind | None = None
    unit: str = ""
    placeholder: str = ""
    help: str = ""


_EMBEDDINGS = SearchField("embeddings", "Which embeddings", offers="embeddings")
_WINDOW = SearchField("window", "Window", "512", unit="tokens")


@dataclass(frozen=True)
class CurationSearch:
    """A card. `needs`: what a finished job of kind `job` must have measured, in words; the job is chosen in the field `needed`."""

    kind: str
    title: str
    text: str
    fields: tuple[SearchField, ...] = ()
    job: str = ""
    needs: str = ""
    needed: Kind | None = None


FAULTS_OF_DATA = (
    CurationSearch(
        "duplicates",
        "Duplicates",
        "Examples that say the same as an earlier one, word for word or nearly. The first one stays.",
        (
            SearchField(
                "scope", "What is compared", "all", (("all", "Prompt and responses"), ("prompt", "Prompt only"))
            ),
            SearchField("threshold", "Least similarity", "0.8", (("1", "Exact only"), *_ALIKE)),
        ),
    ),
    CurationSearch(
        "leaks",
        "Leaks",
        "Prompts that are in train and held out as well, the same or nearly the same. The example on one side is "
        "removed. The first page of the version counts groups that are on both sides.",
        (
            SearchField(
                "remove",
                "Which side to remove from",
                "train",
                (("train", "Remove from train"), ("heldout", "Remove from held out")),
            ),
            SearchField("threshold", "Least similarity", "0.8", (("1", "Same prompts only"), *_ALIKE)),
        ),
    ),
    CurationSearch(
        "structure",
        "Rubrics by their words",
        "Compound, vague, doubled or contradicting criteria, too few or too many of them, verifiers that cannot "
        "run. These are hints, not verdicts: only contradictions and broken verifiers can be removed here.",
    ),
    CurationSearch(
        "criteria",
        "Criteria that never discriminate",
        "Criteria that every recorded response meets, or none. Verifiers and recorded grades decide; a criterion "
        "with fewer than two verdicts counts as unknown.",
    ),
)
SELECTIONS = (
    CurationSearch(
        "shortest",
        "Drop the shortest",
        "Removes the examples with the shortest responses: the prompts that need long responses are the harder half (GLM-4.5).",
        (SearchField("share", "Share to remove", "0.5", _GOES),),
    ),
    CurationSearch(
        "balance",
        "Balance domains",
        "Keeps at most this many examples of each domain, drawn at random. The same seed draws the same examples.",
        (
            SearchField("most", "At most", placeholder="smallest", help="Empty: as many as the smallest domain has"),
            SearchField("seed", "Seed", "0"),
        ),
    ),
    CurationSearch(
        "hardest",
        "Keep what is hard for a model",
        "Removes the easy examples. The hardest window of a response decides: its mean negative log-likelihood "
        "under the model (LongCat, 2026).",
        (
            SearchField("log_probs", "Hard for which model", offers="log_probs"),
            _WINDOW,
            SearchField("share", "Share to remove", "0.5", (*_GOES, ("0.9", "90%"))),
        ),
        job="logprobs",
        needs="log-probabilities of each token",
        needed="log_probs",
    ),
    CurationSearch(
        "cover",
        "Keep what covers the rest",
        "K-center on embeddings: each pick is the example farthest from those picked before, with the distance "
        "weighted by how hard it is for a model (LongCat, 2026). The rest is removed.",
        (
            _EMBEDDINGS,
            SearchField("log_probs", "Hard for which model", "", (("", "By distance alone"),), "log_probs"),
            _WINDOW,
            SearchField(
                "share",
                "Share to keep",
                "0.1",
                (
                    ("0.01", "1% stays"),
                    ("0.05", "5% stay"),
                    ("0.1", "10% stay"),
                    ("0.25", "A quarter stays"),
                    ("0.5", "Half stays"),
                ),
            ),
        ),
        job="embed",
        needs="embeddings",
        needed="embeddings",
    ),
    CurationSearch(
        "meaning",
        "Near duplicates by meaning",
        "Finds examples whose embeddings are nearly the same, within clusters. The example that is least like its "
        "cluster stays (SemDeDup). This also finds examples with other words and the same meaning.",
        (
            _EMBEDDINGS,
            SearchField(
                "likeness",
                "From which cosine two mean the same",
                "0.95",
                tuple((cosine, f"cosine {cosine}") for cosine in ("0.99", "0.95", "0.9", "0.8")),
            ),
        ),
        job="embed",
        needs="embeddings",
        needed="embeddings",
    ),
    CurationSearch(
        "faulty",
        "Keep what provokes rare faults",
        "Looks for mixed scripts, repetition and broken format. If a fault is rare among all responses, the "
        "prompts that provoke it stay, so that training can remove it (GLM-4.5). The rest is removed.",
        (
            SearchField(
                "below",
                "How rare a fault must be",
                "0.01",
                (("0.01", "Below 1% of responses"), ("0.05", "Below 5%"), ("0.2", "Below 20%")),
            ),
        ),
    ),
)


@dataclass(frozen=True)
class RefusedSearch:
    """A search that cannot begin: the given values, and the reasons."""

    search: CurationSearch
    given: Mapping[str, str]
    along: Sequence[str]
    problem: Invalid

    def why(self, field: SearchField) -> str:
        return self.problem.fields.get(f"params.{field.name}", "")

    @property
    def elsewhere(self) -> str:
        """The problems that belong to no field of the card."""
        if any(map(self.why, self.search.fields)):
            return ""
        return " ".join([self.problem.message, *self.problem.fields.values()])


def drawn_fields(
    search: CurationSearch, offers: Mapping[str, Sequence[Offer]], refused: RefusedSearch | None
) -> list[dict[str, Any]]:
    """The fields with their options and values; after a refusal, with the given values and their problems."""
    return [
        {
            "field": field,
            "options": [
                *field.options,
                *((str(each.job), f"{each.title} (job {each.job})") for each in _offered(field, offers)),
            ],
            "value": refused.given[field.name] if refused else field.default,
            "problem": refused.why(field) if refused else "",
        }
        for field in search.fields
    ]


def _offered(field: SearchField, offers: Mapping[str, Sequence[Offer]]) -> Sequence[Offer]:
    return offers[field.offers] if field.offers else ()
