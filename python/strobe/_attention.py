"""Attention and its gradients, for arrays of any library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Optional, TypedDict

from strobe._libraries import Array, Arrays, Settings, library_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

Window = tuple[Optional[int], Optional[int]]


class Options(TypedDict, total=False):
    """Keyword arguments of `attention`, for the functions that take the same."""

    causal: bool
    window: Window | None
    scale: float | None
    softcap: float
    bias: Array | None
    sinks: Array | None
    alibi_slopes: Array | None
    dropout: float
    dropout_seed: int
    cu_seqlens_q: Array | None
    cu_seqlens_k: Array | None
    max_seqlen_q: int | None
    max_seqlen_k: int | None
    implementation: str | None
    threads: int
    deterministic: bool
    tf32: bool


_OPTIONAL_ARRAYS = ("bias", "sinks", "alibi_slopes", "cu_seqlens_q", "cu_seqlens_k")


def split(q: Array, k: Array, v: Array, options: Options) -> tuple[Arrays, Settings]:
    """Arguments as the native module takes them."""
    arrays: Arrays = {"q": q, "k": k, "v": v}
    settings: Settings = {}
    for name, value in options.items():
        (arrays if name in _OPTIONAL_ARRAYS else settings)[name] = value
    return arrays, settings


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    causal: bool = False,
    window: Window | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    bias: Array | None = None,
    sinks: Array | None = None,
    alibi_slopes: Array | None = None,
    dropout: float = 0.0,
    dropout_seed: int = 0,
    cu_seqlens_q: Array | None = None,
    cu_seqlens_k: Array | None = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    return_lse: bool = False,
    implementation: str | None = None,
    threads: int = 0,
    deterministic: bool = False,
    tf32: bool = False,
) -> Any:
    """softmax(scale · q kᵀ) v, for each head.

    Args:
        q: [batch, seqlen_q, heads, dim], of float32, float16 or bfloat16. Any strides but on the
            last axis, which is contiguous.
        k: [batch, seqlen_k, heads_k, dim]. Each of its heads serves heads / heads_k of q.
        v: [batch, seqlen_k, heads_k, dim_v].
        causal: A query sees no key after its own position. Query i stands at key
            i + seqlen_k - seqlen_q: the mask is aligned to the bottom right.
        window: (left, right), how many keys a query sees before and after its own position; None
            or -1 is no limit.
        scale: 1/√dim if None.
        softcap: c · tanh(x / c) of the scaled logits; 0 is none.
        bias: [batch or 1, heads or 1, seqlen_q or 1, seqlen_k], added to the logits; minus infinity
            hides a key.
        sinks: float32 [heads], a logit of each head that has no value.
        alibi_slopes: float32 [heads] or [batch, heads]; slope · distance is taken off the logits.
        dropout: The probability of dropping a weight, in [0, 1).
        dropout_seed: Together with the position it decides what is dropped, on every device.
        cu_seqlens_q, cu_seqlens_k: int32 [batch + 1], the offsets of sequences of different
            lengths. q, k and v are then [total, heads, dim]. That of k is as that of q if None.
            Rows past the last offset are left as they are.
        max_seqlen_q, max_seqlen_k: The longest sequence; needed if the offsets are on a GPU.
        return_lse: Return (out, lse) with the logarithm of each row's sum of exponentials,
            float32 [batch, heads, seqlen_q], or [heads, total] of different lengths.
        implementation: By its name, see `implementations()`; the best one if None.
        threads: On the CPU; 0 takes STROBE_THREADS or the cores of this process.
        deterministic: The gradients on GPUs are the same bits in every run. (Outputs always are.)
        tf32: Products of float32 on GPUs may be rounded to TF32.

    Returns:
        [batch, seqlen_q, heads, dim_v], in q's library, dtype and device, or a pair with the lse.
        A row that sees no key is 0, its lse minus infinity.

    Raises:
        TypeError, ValueError: An argument is wrong; the message begins with its name.
        NotImplementedError: No implementation, or not the one that was asked for, can do it here.
    """
    arrays = {
        "q": q,
        "k": k,
        "v": v,
        "bias": bias,
        "sinks": sinks,
        "alibi_slopes": alibi_slopes,
        "cu_seqlens_q": cu_seqlens_q,
        "cu_seqlens_k": cu_seqlens_k,
    }
    settings = {
        "causal": causal,
        "window": window,
        "scale": scale,
        "softcap": softcap,
        "dropout": dropout,
        "dropout_seed": dropout_seed,
        "max_seqlen_q": max_seqlen_q,
        "max_seqlen_k": max_seqlen_k,
        "implementation": implementation,
        "threads": threads,
        "deterministic": deterministic,
        "tf32": tf32,
        "return_lse": return_lse,
    }
    out, lse = library_of(q, "q").forward(arrays, settings)
    return (out, lse) if return_lse else out


class Gradients(NamedTuple):
    """Each as the argument of its name; None for one that was not given."""

    q: Array
    k: Array
    v: Array
    bias: Array | None
    sinks: Array | None


def attention_backward(
    dout: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    **options: Unpack[Options],
) -> Gradients:
    """The gradients of `attention`, for libraries without autograd; PyTorch's needs no help.

    Args:
        dout: The gradient of the output, shaped as it.
        out, lse: What `attention(..., return_lse=True)` returned for the other arguments, which
            are the same here.
        options: Keyword arguments of `attention`.
    """
    arrays, settings = split(q, k, v, options)
    arrays.update(dout=dout, out=out, lse=lse)
    settings["bias_gradient"] = arrays.get("bias") is not None
    settings["sinks_gradient"] = arrays.get("sinks") is not None
    return Gradients(*library_of(q, "q").backward(arrays, settings))
