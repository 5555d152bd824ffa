"""Attention in plain products, for the backward passes of PyTorch's kernels: what they take from the forward pass, and their reference."""

from collections.abc import Mapping
from math import sqrt
from typing import Any, Final

#: Operators whose arguments `out` and `logsumexp` only the forward pass can compute.
BACKWARD: Final = tuple(
    f"aten::_scaled_dot_product_{kind}_attention{of}_backward"
    for kind, of in (("flash", ""), ("efficient", ""), ("cudnn", ""), ("flash", "_for_cpu"))
)


def fill_forward(given: Mapping[str, Any]) -> None:
    """Write what the forward pass computes to the arguments `out` and `logsumexp`.

    Args:
        given: the arguments of a backward pass by the names of their parameters.
    """
    import torch

    on_gpu = torch.cuda.is_available()
    query, key, value, bias = (each.cuda() if on_gpu and each is not None else each for each in _operands(given))
    out, logsumexp = given["out"], given["logsumexp"]
    for text in range(query.shape[0]):
        scores = _scores(given, query[text], key[text], None if bias is None else bias[text])
        sums = torch.logsumexp(scores, -1)
        _rows(logsumexp[text], sums.shape[-1]).copy_(sums)
        probabilities = torch.exp(scores - sums[..., None])
        out[text].copy_(probabilities @ _heads(value[text].to(scores.dtype), len(scores)))


def backward(given: Mapping[str, Any]) -> tuple[Any, ...]:
    """The gradients of query, key and value."""
    import torch

    query, key, value, bias = _operands(given)
    gradient = given.get("grad_out", given.get("grad_out_"))
    gradients = tuple(torch.empty_like(each) for each in (query, key, value))
    for text in range(query.shape[0]):
        scores = _scores(given, query[text], key[text], None if bias is None else bias[text])
        heads = len(scores)
        q, k, v, out, of_out = (
            _heads(each[text].to(scores.dtype), heads) for each in (query, key, value, given["out"], gradient)
        )
        probabilities = torch.exp(scores - _rows(given["logsumexp"][text], q.shape[1]).to(scores.dtype)[..., None])
        of_probabilities = of_out @ v.mT - (of_out * out).sum(-1, keepdim=True)
        of_scores = probabilities * of_probabilities * _scale(given)
        found = of_scores @ k, of_scores.mT @ q, probabilities.mT @ of_out
        for into, each in zip(gradients, found, strict=True):
            into[text].copy_(each.unflatten(0, (into.shape[1], -1)).sum(1))
    return gradients


def _operands(given: Mapping[str, Any]) -> tuple[Any, ...]:
    """Query, key, value, and the bias of the scores for each text, or None."""
    query, bias = given["query"], given.get("attn_bias", given.get("attn_mask"))
    if bias is not None:
        bias = bias.expand(query.shape[0], *bias.shape[1:])
    return query, given["key"], given["value"], bias


def _scale(given: Mapping[str, Any]) -> float:
    return given["scale"] or 1 / sqrt(given["query"].shape[-1])


def _scores(given: Mapping[str, Any], query: Any, key: Any, bias: Any) -> Any:
    """Scores of one text, in float32 or float64."""
    import torch

    dtype = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(dtype) @ _heads(key.to(dtype), len(query)).mT * _scale(given)
    if given["is_causal"]:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    return scores if bias is None else scores + bias


def _heads(each: Any, heads: int) -> Any:
    """A tensor of so many heads: several heads of the query may share one of key and value."""
    return each if len(each) == heads else each.repeat_interleave(heads // len(each), 0)


def _rows(logsumexp: Any, rows: int) -> Any:
    """The sums by head and row. Kernels have a further axis of one, or more rows than there are."""
    return logsumexp.squeeze(-1) if logsumexp.dim() > 2 else logsumexp[:, :rows]
