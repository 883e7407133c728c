"""flash_attn 3, whose module is called flash_attn_interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import flash_attn_interface

from strobe.peers._torch import Attend, Tensor, TorchPeer, lengths

if TYPE_CHECKING:
    from strobe._laboratory import Conditions, Problem
    from strobe.peers._peer import Peer


class FlashAttn3(TorchPeer):
    name = "flash_attn:3"
    summary = "FlashAttention 3 by its own package, for Hopper"
    library = f"flash_attn {getattr(flash_attn_interface, '__version__', '3')}"
    devices = ("cuda",)
    features = frozenset(
        {"causal", "bottom_right", "window", "softcap", "varlen", "grouped", "backward"}
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
            "deterministic": conditions.deterministic,
        }
        function = flash_attn_interface.flash_attn_func
        if problem.varlen:
            function = flash_attn_interface.flash_attn_varlen_func
            options.update(lengths(problem, tensors))

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            result = function(q, k, v, **options)
            return result[0] if isinstance(result, tuple) else result  # (out, lse) at first

        return attend


def peers() -> list[Peer]:
    return [FlashAttn3()]
