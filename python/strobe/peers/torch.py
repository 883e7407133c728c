"""PyTorch's scaled_dot_product_attention, by each of its backends, and FlexAttention."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable

import torch
from torch.nn.functional import scaled_dot_product_attention

from strobe.peers._torch import Attend, Tensor, TorchPeer

if TYPE_CHECKING:
    from strobe._laboratory import Conditions, Problem
    from strobe.peers._peer import Peer

_LIBRARY = f"torch {torch.__version__}"

_CUDA = torch.backends.cuda
_BACKENDS: dict[str, tuple[Callable[[bool], None], Callable[[], bool]]] = {
    "math": (_CUDA.enable_math_sdp, _CUDA.math_sdp_enabled),
    "flash": (_CUDA.enable_flash_sdp, _CUDA.flash_sdp_enabled),
    "efficient": (_CUDA.enable_mem_efficient_sdp, _CUDA.mem_efficient_sdp_enabled),
    "cudnn": (_CUDA.enable_cudnn_sdp, _CUDA.cudnn_sdp_enabled),
}


class _Choice:
    """The one backend that PyTorch may take. torch.nn.attention.sdpa_kernel says the same, for 25
    microseconds in every call."""

    def __init__(self) -> None:
        self._backend: str | None = None

    def be(self, backend: str) -> None:
        if backend != self._backend:
            for name, (enable, _) in _BACKENDS.items():
                enable(name == backend)
            self._backend = backend

    def forget(self) -> None:
        self._backend = None


_choice = _Choice()


@contextlib.contextmanager
def settings_kept() -> Iterator[None]:
    """Puts back what the peers set for the whole process."""
    threads = torch.get_num_threads()
    tf32 = _CUDA.matmul.allow_tf32
    enabled = {name: is_enabled() for name, (_, is_enabled) in _BACKENDS.items()}
    _choice.forget()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        _CUDA.matmul.allow_tf32 = tf32
        for name, (enable, _) in _BACKENDS.items():
            enable(enabled[name])


class Sdpa(TorchPeer):
    library = _LIBRARY

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self.name = f"torch:{backend}"
        self.summary = f"PyTorch's scaled_dot_product_attention, the backend {backend}"
        self.devices = ("cpu", "cuda") if backend in ("math", "flash") else ("cuda",)

    def features_on(self, device: str) -> frozenset[str]:
        common = {"causal", "backward"}
        if self._backend == "math":
            return frozenset(common | {"bias", "bias_gradient", "grouped", "value_dim"})
        if self._backend == "efficient":
            return frozenset(common | {"bias", "value_dim"})
        if device == "cpu":
            return frozenset(common | {"bias", "grouped"})
        return frozenset(common | {"grouped"})

    def dtypes_on(self, device: str) -> tuple[str, ...]:
        wide = device == "cpu" or self._backend in ("math", "efficient")
        return ("fp32", "fp16", "bf16") if wide else ("fp16", "bf16")

    def missing(self, problem: Problem, device: str) -> list[str]:
        missing = super().missing(problem, device)
        if problem.causal and problem.bias:
            missing.append("a bias together with a causal mask")
        return missing

    def attend(
        self, problem: Problem, tensors: dict[str, Tensor], conditions: Conditions
    ) -> Attend:
        options: dict[str, Any] = {
            "is_causal": problem.causal,
            "scale": problem.scale,
            "enable_gqa": problem.heads_k != problem.heads,
        }

        def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
            _choice.be(self._backend)
            q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
            return scaled_dot_product_attention(q, k, v, bias, **options).transpose(1, 2)

        self._try(attend, tensors)
        return attend

    def _try(self, attend: Attend, tensors: dict[str, Tensor]) -> None:
        """Why a backend will not have a problem, PyTorch tells by warnings alone."""
        inputs = [tensors[name] for name in ("q", "k", "v", "bias") if name in tensors]
        with warnings.catch_warnings(record=True) as reasons, torch.no_grad():
            warnings.simplefilter("always")
            try:
                attend(*inputs)
            except RuntimeError as error:
                if "No available kernel" not in str(error):
                    raise
                sentences = [str(reason.message).split(" (Triggered")[0] for reason in reasons]
                raise NotImplementedError(" ".join(sentences) or str(error)) from error


class Flex(TorchPeer):
    name = "torch:flex"
    summary = "PyTorch's FlexAttention, compiled for the problem"
    library = _LIBRARY
    devices = ("cuda",)  # PyTorch does not compile it for every CPU
    dtypes = ("fp32", "fp16", "bf16")
    features = frozenset(
        {"causal", "bottom_right", "window", "softcap", "alibi", "bias", "grouped", "value_dim"}
        | {"backward"}
    )

    def attend(
        self, problem: Problem, tensors: dict[str, Tensor], conditions: Conditions
    ) -> Attend:
        options = {
            "score_mod": _score_of(problem, tensors),
            "block_mask": _mask_of(problem, conditions.device),
            "scale": problem.scale,
            "enable_gqa": problem.heads_k != problem.heads,
        }

        def attend(q: Tensor, k: Tensor, v: Tensor, *_: Tensor) -> Tensor:
            q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
            return _compiled_flex_attention()(q, k, v, **options).transpose(1, 2)

        return attend


@functools.cache
def _compiled_flex_attention() -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=False)


def _mask_of(problem: Problem, device: str) -> Any:
    left, right = problem.effective_window
    if left < 0 and right < 0:
        return None
    from torch.nn.attention.flex_attention import create_block_mask

    shift = problem.seqlen_k - problem.seqlen_q

    def visible(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        seen = j >= 0
        if left >= 0:
            seen = seen & (j >= i + shift - left)
        if right >= 0:
            seen = seen & (j <= i + shift + right)
        return seen

    return create_block_mask(visible, None, None, problem.seqlen_q, problem.seqlen_k, device)


def _score_of(problem: Problem, tensors: dict[str, Tensor]) -> Callable[..., Tensor] | None:
    if not (problem.softcap or problem.alibi or problem.bias):
        return None
    cap, shift = problem.softcap, problem.seqlen_k - problem.seqlen_q
    shape = (problem.batch, problem.heads, problem.seqlen_q, problem.seqlen_k)
    slopes = tensors["alibi_slopes"].expand(shape[:2]) if problem.alibi else None
    bias = tensors["bias"].expand(shape) if problem.bias else None

    def score(x: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        if cap:
            x = cap * torch.tanh(x / cap)
        if bias is not None:
            x = x + bias[b, h, i, j]
        if slopes is not None:
            x = x - slopes[b, h] * (i + shift - j).abs()
        return x

    return score


def peers() -> list[Peer]:
    return [*(Sdpa(backend) for backend in _BACKENDS), Flex()]
