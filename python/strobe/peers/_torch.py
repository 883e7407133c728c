"""What the peers that work on PyTorch's tensors share."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Callable, ClassVar

import torch
from torch import Tensor

from strobe.peers._peer import Peer

if TYPE_CHECKING:
    from strobe._laboratory import Conditions, Problem

# Takes q, k and v, and the bias where there is one: [batch, seqlen, heads, dim], or of different
# lengths [total, heads, dim], as the result is.
Attend = Callable[..., Tensor]

# A feature is what a peer names in `features`, and what is missing where it does not.
_FEATURES: dict[str, tuple[str, Callable[[Problem], bool]]] = {
    "causal": ("causal masks", lambda p: p.causal),
    "bottom_right": (
        "causal masks aligned to the bottom right (as many queries as keys will do)",
        lambda p: p.causal and (p.seqlen_q != p.seqlen_k or p.lengths_q != p.lengths_k),
    ),
    "window": ("windows", lambda p: p.window != (-1, -1)),
    "softcap": ("softcap", lambda p: p.softcap > 0),
    "alibi": ("ALiBi", lambda p: p.alibi),
    "sinks": ("sinks", lambda p: p.sinks),
    "bias": ("a bias", lambda p: p.bias),
    "bias_gradient": ("the gradient of a bias", lambda p: p.bias and p.backward),
    "varlen": ("variable lengths", lambda p: p.varlen),
    "grouped": ("fewer key heads than query heads", lambda p: p.heads_k != p.heads),
    "value_dim": ("values of another dim than the keys", lambda p: p.dim_v != p.dim),
    "backward": ("a backward pass", lambda p: p.backward),
    "dropout": ("dropout of the weights that ours drops", lambda p: p.dropout > 0),
}


class TorchPeer(Peer):
    """Describes itself by what it takes; the rest is the same for all."""

    dtypes: ClassVar[tuple[str, ...]] = ("fp16", "bf16")
    features: ClassVar[frozenset[str]] = frozenset()
    most_dim: ClassVar[int] = 512

    def missing(self, problem: Problem, device: str) -> list[str]:
        if device == "cuda" and not torch.cuda.is_available():
            return ["a GPU that PyTorch can use"]
        features = self.features_on(device)
        missing = [
            phrase
            for name, (phrase, needed) in _FEATURES.items()
            if needed(problem) and name not in features
        ]
        if problem.dtype not in self.dtypes_on(device):
            missing.append(f"{problem.dtype} (has {', '.join(self.dtypes_on(device))})")
        if max(problem.dim, problem.dim_v) > self.most_dim:
            missing.append(f"head dims above {self.most_dim}")
        return missing

    def features_on(self, device: str) -> frozenset[str]:
        return self.features

    def dtypes_on(self, device: str) -> tuple[str, ...]:
        return self.dtypes

    @abstractmethod
    def attend(
        self, problem: Problem, tensors: dict[str, Tensor], conditions: Conditions
    ) -> Attend:
        """The library's function with everything but q, k, v and the bias filled in."""

    def prepare(self, problem: Problem, arrays: dict[str, Any], conditions: Conditions) -> TorchRun:
        torch.backends.cuda.matmul.allow_tf32 = conditions.tf32
        if conditions.device == "cpu":
            torch.set_num_threads(conditions.threads)
        tensors = {name: torch.from_dlpack(array) for name, array in arrays.items()}
        stream = stream_of(conditions)
        with stream():
            attend = self.attend(problem, tensors, conditions)
            kind = Backward if problem.backward else Forward
            return kind(attend, tensors, stream)


def stream_of(conditions: Conditions) -> Callable[[], contextlib.AbstractContextManager[Any]]:
    """What makes the stream of the conditions PyTorch's current one."""
    if conditions.device == "cpu":
        return contextlib.nullcontext
    stream = torch.cuda.ExternalStream(conditions.stream, device=conditions.device)
    return lambda: torch.cuda.stream(stream)


class TorchRun:
    """Computes on a stream and keeps the results until they are delivered."""

    outputs: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        attend: Attend,
        tensors: dict[str, Tensor],
        stream: Callable[[], contextlib.AbstractContextManager[Any]],
    ) -> None:
        self._attend = attend
        self._inputs = [tensors[name] for name in ("q", "k", "v", "bias") if name in tensors]
        self._targets = [tensors[name] for name in self.outputs if name in tensors]
        self._given = {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}
        self._stream = stream
        self._results: tuple[Tensor, ...] | None = None

    def compute(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def __call__(self) -> None:
        try:
            with self._stream():
                self._results = self.compute()
        except RuntimeError as error:
            raise _as_memory_error(error) from error

    def deliver(self) -> bool:
        if self._results is None:
            return False
        with self._stream(), torch.no_grad():
            for target, result in zip(self._targets, self._results):
                if result.shape != target.shape:
                    shapes = f"{list(result.shape)}, {list(target.shape)}"
                    raise ValueError(f"the result is of shape {shapes} is expected")
                target.copy_(result)
                # The allocator hands the memory out again: what is computed there next time must
                # not be there already.
                if result.untyped_storage().data_ptr() not in self._given:
                    result.fill_(float("nan"))
        self._results = None
        return True


class Forward(TorchRun):
    outputs = ("out",)

    def compute(self) -> tuple[Tensor, ...]:
        with torch.no_grad():
            return (self._attend(*self._inputs),)


class Backward(TorchRun):
    """The forward pass is part of preparing it."""

    outputs = ("dq", "dk", "dv", "dbias")

    def __init__(self, attend: Attend, tensors: dict[str, Tensor], stream: Any) -> None:
        super().__init__(attend, tensors, stream)
        self._dout = tensors["dout"]
        self._leaves = [tensor.detach().requires_grad_() for tensor in self._inputs]
        try:
            with torch.enable_grad():
                self._out = attend(*self._leaves)
        except RuntimeError as error:
            raise _as_memory_error(error) from error

    def compute(self) -> tuple[Tensor, ...]:
        return torch.autograd.grad(self._out, self._leaves, self._dout, retain_graph=True)


def _as_memory_error(error: RuntimeError) -> Exception:
    """PyTorch has two for missing memory, neither of them Python's."""
    if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error):
        return MemoryError(str(error))
    return error
