"""Exact attention on CPUs and NVIDIA GPUs, for the arrays of NumPy, PyTorch, JAX, CuPy and whoever
else speaks DLPack.

    out = strobe.attention(q, k, v, causal=True)

Nothing is copied, and the result is an array of the same library. PyTorch's autograd and
torch.compile see it as an operator of their own. `strobe.compat.flash_attn` has the functions of
flash_attn under their names.
"""

from strobe._attention import (
    Gradients,
    attention,
    attention_backward,
)
from strobe._compare import compare
from strobe._explain import Explanation, explain, implementations, info
from strobe._native import clear_cache, version

__version__ = version()

__all__ = [
    "Explanation",
    "Gradients",
    "__version__",
    "attention",
    "attention_backward",
    "clear_cache",
    "compare",
    "explain",
    "implementations",
    "info",
]
