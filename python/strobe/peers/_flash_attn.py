"""What the packages of FlashAttention 2 and 3 share: functions of the same names and options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from strobe.peers._torch import Attend, Tensor, TorchPeer

if TYPE_CHECKING:
    from strobe._laboratory import Conditions, Problem


class FlashAttnPeer(TorchPeer):
    module: ClassVar[Any]
    devices = ("cuda",)
    features = frozenset(
        {"causal", "bottom_right", "window", "softcap", "varlen", "grouped", "backward"}
    )
    most_dim = 256

    def attend(
        self, problem: Problem, tensors: dict[str, Tensor], conditions: Conditions
    ) -> Attend:
        function = self.module.flash_attn_func
        options = {
            "softmax_scale": problem.scale,
            "causal": problem.causal,
            "window_size": problem.window,
            "softcap": problem.softcap,
            "deterministic": conditions.deterministic,
        }
        if "alibi" in self.features:
            options["alibi_slopes"] = tensors.get("alibi_slopes")
        if problem.varlen:
            function = self.module.flash_attn_varlen_func
            options["cu_seqlens_q"] = tensors["cu_seqlens_q"]
            options["cu_seqlens_k"] = tensors["cu_seqlens_k"]
            options["max_seqlen_q"] = problem.seqlen_q
            options["max_seqlen_k"] = problem.seqlen_k

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            result = function(q, k, v, **options)
            return result[0] if isinstance(result, tuple) else result  # (out, lse) of early 3s

        return attend
