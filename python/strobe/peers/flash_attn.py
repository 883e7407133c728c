"""flash_attn 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import flash_attn

from strobe.peers._torch import Attend, Tensor, TorchPeer, lengths

if TYPE_CHECKING:
    from strobe._laboratory import Conditions, Problem
    from strobe.peers._peer import Peer


class FlashAttn(TorchPeer):
    name = "flash_attn:2"
    summary = "FlashAttention 2 by its own package"
    library = f"flash_attn {getattr(flash_attn, '__version__', '')}"
    devices = ("cuda",)
    features = frozenset(
        {"causal", "bottom_right", "window", "softcap", "alibi", "varlen", "grouped", "backward"}
    )
    most_dim = 256

    def attend(
        self, problem: Problem, tensors: dict[str, Tensor], conditions: Conditions
    ) -> Attend:
        options = {
            "softmax_scale": problem.scale,
            "causal": problem.causal,
            "window_size": problem.window,
            "softcap": problem.softcap,
            "alibi_slopes": tensors.get("alibi_slopes"),
            "deterministic": conditions.deterministic,
        }
        if problem.varlen:
            options.update(lengths(problem, tensors))
            return lambda q, k, v: flash_attn.flash_attn_varlen_func(q, k, v, **options)
        return lambda q, k, v: flash_attn.flash_attn_func(q, k, v, **options)


def peers() -> list[Peer]:
    if flash_attn.__name__.startswith("strobe."):
        raise ImportError("the flash_attn of this process is strobe.compat.flash_attn")
    return [FlashAttn()]
