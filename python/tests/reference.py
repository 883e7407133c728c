"""Attention in float64, written to be read, and the rule that results are held to."""

import numpy as np


def hidden(distance, causal=False, window=None):
    """Which keys a query does not see, by how far it is past them; of any library's arrays."""
    left, right = (-1 if limit is None else limit for limit in window or (-1, -1))
    right = 0 if causal else right
    return (distance > left) & (left >= 0) | (-distance > right) & (right >= 0)


def attention(
    q,
    k,
    v,
    *,
    causal=False,
    window=None,
    scale=None,
    softcap=0.0,
    bias=None,
    sinks=None,
    alibi_slopes=None,
):
    """(out, lse) of dense arrays [batch, seqlen, heads, dim]."""
    q, k, v = (np.asarray(array, np.float64).transpose(0, 2, 1, 3) for array in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, axis=1), v.repeat(group, axis=1)
    logits = q @ k.transpose(0, 1, 3, 2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap:
        logits = softcap * np.tanh(logits / softcap)
    if bias is not None:
        logits = logits + np.asarray(bias, np.float64)

    rows, keys = logits.shape[-2:]
    distance = np.arange(rows)[:, None] + keys - rows - np.arange(keys)  # of the query past the key
    if alibi_slopes is not None:
        slopes = np.asarray(alibi_slopes, np.float64)
        logits = logits - slopes.reshape(-1, slopes.shape[-1], 1, 1) * np.abs(distance)
    logits = np.where(hidden(distance, causal, window), -np.inf, logits)

    most = logits.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = np.exp(logits - np.where(np.isfinite(most), most, 0))
    most = np.where(np.isfinite(most), most, 0)
    total = weights.sum(axis=-1, keepdims=True)
    seen = total > 0
    if sinks is not None:
        total = total + np.exp(np.asarray(sinks, np.float64)[:, None, None] - most)
    with np.errstate(divide="ignore"):
        lse = np.where(seen, np.log(total) + most, -np.inf)
    out = weights / np.where(seen, total, 1) @ v
    return out.transpose(0, 2, 1, 3), lse[..., 0]


def to_float32(numbers):
    return numbers.astype(np.float32).astype(np.float64)


def assert_by_the_rule(ours, truth, unfused, factor=2.0, rounded=to_float32, epsilon=2.0**-23):
    """No element further from float64 than `factor` times what the unfused computation gets wrong
    at most, and what rounding the truth does; the mean 1.5 times as far, or half a unit in the
    last place. Of a few elements the mean is chance. `rounded` and `epsilon` are the dtype's."""
    ours, truth, unfused = (np.asarray(array, np.float64) for array in (ours, truth, unfused))
    error, allowed = np.abs(ours - truth), np.abs(unfused - truth)
    rounding = np.abs(rounded(rounded(rounded(truth) + 0.3) - 0.3) - truth)
    assert np.isfinite(ours).all()
    assert error.max() <= factor * (allowed.max() + rounding.max())
    half_a_unit = 0.5 * epsilon * np.abs(truth).mean()
    assert error.size < 16 or error.mean() <= max(1.5 * allowed.mean(), half_a_unit)
