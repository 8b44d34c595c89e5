"""The metrics of the answers to held-out prompts after the last step; `trainer.loops.policy.closing` measures them."""

from ..recipe import Metric

_OF = "Of evaluation.closing.samples responses to each held-out prompt after the last step, at the temperature of training."
CLOSING = (
    Metric("closing/score", "Score", f"Mean rubric score. {_OF}", "closing", better="higher", optional=True),
    Metric(
        "closing/pass_at_*",
        "pass@k",
        f"Chance that one of k responses passes (evaluation.closing.passed), without bias. {_OF}",
        "closing",
        better="higher",
        optional=True,
    ),
    Metric(
        "closing/best_of_*",
        "Best of n",
        f"Expected best score of n responses. {_OF}",
        "closing",
        better="higher",
        optional=True,
    ),
    Metric(
        "closing/novelty",
        "Novelty",
        "Median over the responses of how much likelier a token has become than it was to the untrained model.",
        "closing",
        optional=True,
    ),
    Metric(
        "closing/novel_above_*",
        "Novel responses",
        "Share of responses whose tokens have become likelier, by more than this factor, than they were to the untrained model.",
        "closing",
        unit="responses",
        optional=True,
    ),
    Metric(
        "closing/self_bleu_diversity",
        "by words",
        "How much the responses to one prompt differ: 1 - Self-BLEU, and the mean cosine distance of embeddings if the embedding model is installed.",
        "closing",
        chart="Diversity",
        optional=True,
    ),
    Metric("closing/embedding_diversity", "by meaning", "", "closing", chart="Diversity", optional=True),
    Metric(
        "closing/entropy", "Entropy", f"Of the policy's own tokens. {_OF}", "closing", unit="nats/token", optional=True
    ),
    Metric("closing/length", "Length", _OF, "closing", unit="tokens", optional=True),
    Metric(
        "closing/excluded",
        "Excluded responses",
        "Responses that could not be scored and were left out. Missing is never 0.",
        "closing",
        unit="responses",
        optional=True,
    ),
)
