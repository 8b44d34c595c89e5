"""Counts the bytes that a training pass keeps for its backward pass, per token and as a whole.

The counts follow from the operations of transformers' decoders and of `trainer.loops.learner.head`. Tests compare them with what torch's
autograd really saves (tests/trainer/memory). D hidden, Q queries, K keys, F width of the MLP, V vocabulary, N tokens of a pass.
"""

from .shape import ModelShape

WIDE = 4
"""Bytes of a float32, in which norms and the sums behind logits are computed."""
ROWS_ON_CPU, ROWS_ON_GPU = 256, 2048
"""The number of tokens that have logits at once (`trainer.loops.learner.head`)."""


def layer_bytes(shape: ModelShape, element: int, rank: int | None) -> int:
    """Bytes that a pass keeps of one token in one layer. `rank` is that of the adapters; None if all weights are trained.

    Both norms keep their input in float32 (D each) and one scale; attention keeps one sum per head. If all weights are trained, the norms
    keep what they scale and what they give, 2 D each; attention keeps its queries, keys, values and output, 2 Q + 2 K, and no
    mask (`trainer.inference.tree_attention`); the MLP keeps 4 F. With adapters the base's weights are frozen: the norms keep only what
    they give, 2 D together, because the adapters need it. The adapters also keep what lies between their two matrices, `rank` numbers for
    each of the seven.
    """
    d, q, k, f = shape.hidden, shape.queries, shape.keys, shape.inner
    kept = WIDE * (2 * d + shape.heads + 2)
    if shape.head_norms:
        kept += WIDE * (q + k + shape.heads + shape.key_heads) + (element * (q + k) if rank is None else 0)
    if rank is None:
        return kept + element * (4 * d + 2 * q + 2 * k + 4 * f)
    return kept + element * (2 * d + 2 * q + 2 * k + 4 * f + 7 * rank)


def pass_bytes(shape: ModelShape, tokens: int, element: int, rank: int | None, recompute: bool) -> int:
    """Bytes that a whole pass over `tokens` keeps. With `recompute` each layer keeps only its input, and one layer at a time keeps all."""
    layer = tokens * layer_bytes(shape, element, rank)
    ends = tokens * shape.hidden * (2 * element + 2 * WIDE)
    if recompute:
        return shape.layers * tokens * shape.hidden * element + layer + ends
    return shape.layers * layer + ends


def backward_bytes(shape: ModelShape, tokens: int, element: int) -> int:
    """Bytes of the gradients on their way through one layer: those of the MLP's two inner tensors and of the layer's input and output."""
    return tokens * element * (2 * shape.inner + 2 * shape.hidden)


def head_bytes(shape: ModelShape, element: int, trained: bool, on_gpu: bool) -> int:
    """Bytes that the head needs beside the model: three blocks of logits and, if it is trained, its gradient in float32 and in
    the model's precision.
    """
    rows = ROWS_ON_GPU if on_gpu else ROWS_ON_CPU
    logits = rows * shape.vocabulary * (2 * WIDE + element)
    return logits + shape.vocabulary * shape.hidden * (WIDE + element) if trained else logits
