"""Attention for those of PyTorch who look on: a function for autograd, and for torch.compile the
operators strobe::forward and strobe::backward, which it leaves whole.

`strobe.attention` takes what is needed, so there is seldom a reason to import this. Arguments have
the names that they have there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from strobe import _native
from strobe._libraries import Arrays, Settings, library_of

# Names and types, in the order of the operators' arguments.
_INPUTS = {
    "q": "Tensor",
    "k": "Tensor",
    "v": "Tensor",
    "bias": "Tensor?",
    "sinks": "Tensor?",
    "alibi_slopes": "Tensor?",
    "cu_seqlens_q": "Tensor?",
    "cu_seqlens_k": "Tensor?",
}
_SETTINGS = {
    "causal": "bool",
    "window": "SymInt[]?",
    "scale": "float?",
    "softcap": "float",
    "dropout": "float",
    "dropout_seed": "SymInt",
    "max_seqlen_q": "SymInt?",
    "max_seqlen_k": "SymInt?",
    "implementation": "str?",
    "threads": "int",
    "deterministic": "bool",
    "tf32": "bool",
}
_BACKWARD_INPUTS = {**_INPUTS, "dout": "Tensor", "out": "Tensor", "lse": "Tensor"}
_BACKWARD_SETTINGS = {**_SETTINGS, "bias_gradient": "bool", "sinks_gradient": "bool"}


def _schema(arguments: dict[str, str], results: int) -> str:
    listed = ", ".join(f"{type_} {name}" for name, type_ in arguments.items())
    return f"({listed}) -> ({', '.join(['Tensor'] * results)})"


def _by_name(
    arguments: tuple[Any, ...], inputs: dict[str, str], settings: dict[str, str]
) -> tuple[Arrays, Settings]:
    return (
        dict(zip(inputs, arguments)),
        dict(zip(settings, arguments[len(inputs) :])),
    )


def _last_axis_contiguous(tensor: Tensor) -> Tensor:
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _forward(*arguments: Any) -> tuple[Tensor, Tensor]:
    arrays, settings = _by_name(arguments, _INPUTS, _SETTINGS)
    settings["return_lse"] = True
    return _native.forward(library_of(arrays["q"], "q"), arrays, settings)


def _backward(*arguments: Any) -> tuple[Tensor, ...]:
    arrays, settings = _by_name(arguments, _BACKWARD_INPUTS, _BACKWARD_SETTINGS)
    q = arrays["q"]
    arrays["dout"] = _last_axis_contiguous(arrays["dout"])  # that of a sum is expanded
    results = _native.backward(library_of(q, "q"), arrays, settings)
    # An operator returns tensors: an empty one stands for what nobody asked for.
    return tuple(q.new_empty(0) if result is None else result for result in results)


_forward_operator = torch.library.custom_op(
    "strobe::forward",
    _forward,
    mutates_args=(),
    schema=_schema({**_INPUTS, **_SETTINGS}, 2),
)
_backward_operator = torch.library.custom_op(
    "strobe::backward",
    _backward,
    mutates_args=(),
    schema=_schema({**_BACKWARD_INPUTS, **_BACKWARD_SETTINGS}, 5),
)


@_forward_operator.register_fake
def _forward_shapes(*arguments: Any) -> tuple[Tensor, Tensor]:
    arrays, _ = _by_name(arguments, _INPUTS, _SETTINGS)
    q, v = arrays["q"], arrays["v"]
    *outer, heads, _ = q.shape
    rows = (heads, *outer) if arrays["cu_seqlens_q"] is not None else (outer[0], heads, outer[1])
    return q.new_empty((*outer, heads, v.shape[-1])), q.new_empty(rows, dtype=torch.float32)


@_backward_operator.register_fake
def _backward_shapes(*arguments: Any) -> tuple[Tensor, ...]:
    arrays, settings = _by_name(arguments, _BACKWARD_INPUTS, _BACKWARD_SETTINGS)
    q, bias, sinks = arrays["q"], arrays["bias"], arrays["sinks"]
    return (
        *(arrays[name].new_empty(arrays[name].shape) for name in ("q", "k", "v")),
        bias.new_empty(bias.shape) if settings["bias_gradient"] else q.new_empty(0),
        sinks.new_empty(sinks.shape) if settings["sinks_gradient"] else q.new_empty(0),
    )


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    out, lse = output
    ctx.save_for_backward(*inputs[: len(_INPUTS)], out, lse)
    ctx.settings = inputs[len(_INPUTS) :]
    ctx.mark_non_differentiable(lse)


def _differentiate(
    backward: Callable[..., tuple[Tensor, ...]], ctx: Any, dout: Tensor
) -> tuple[Tensor | None, ...]:
    *inputs, out, lse = ctx.saved_tensors
    bias, sinks = ctx.needs_input_grad[3:5]
    dq, dk, dv, dbias, dsinks = backward(*inputs, dout, out, lse, *ctx.settings, bias, sinks)
    others = [None] * (len(_INPUTS) - 5 + len(_SETTINGS))
    return (dq, dk, dv, dbias if bias else None, dsinks if sinks else None, *others)


_forward_operator.register_autograd(
    lambda ctx, dout, _: _differentiate(_backward_operator, ctx, dout),
    setup_context=_keep_for_backward,
)


class _Function(torch.autograd.Function):
    """The same without PyTorch's dispatcher, which takes longer than a short sequence."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        output = _forward(*arguments)
        _keep_for_backward(ctx, arguments, output)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        return _differentiate(_backward, ctx, dout)


def _in_order(arrays: Arrays, settings: Settings) -> Iterator[Any]:
    window = settings["window"]
    if window is not None:
        window = [-1 if limit is None else limit for limit in window]
    yield from (arrays[name] for name in _INPUTS)
    yield from (window if name == "window" else settings[name] for name in _SETTINGS)


def differentiable_forward(arrays: Arrays, settings: Settings) -> tuple[Tensor, Tensor]:
    """`attention` for autograd, with the arguments as it makes them."""
    return _Function.apply(*_in_order(arrays, settings))


def traceable_forward(arrays: Arrays, settings: Settings) -> tuple[Tensor, Tensor]:
    """`attention` for whoever traces tensors that need not be there."""
    return _forward_operator(*_in_order(arrays, settings))
