"""xformers' memory_efficient_attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xformers
import xformers.ops
from xformers.ops.fmha import attn_bias

from strobe.peers._torch import Attend, Tensor, TorchPeer

if TYPE_CHECKING:
    from strobe._laboratory import Conditions, Problem
    from strobe.peers._peer import Peer


class Xformers(TorchPeer):
    name = "xformers"
    summary = "xformers' memory_efficient_attention, by the kernel that it chooses"
    library = f"xformers {xformers.__version__}"
    devices = ("cuda",)
    dtypes = ("fp32", "fp16", "bf16")
    features = frozenset({"causal", "bottom_right", "varlen", "grouped", "value_dim", "backward"})

    def attend(
        self, problem: Problem, tensors: dict[str, Tensor], conditions: Conditions
    ) -> Attend:
        mask = _mask_of(problem)
        groups = problem.heads // problem.heads_k

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            shape = (*q.shape[:-1], v.shape[-1])
            if problem.varlen:  # as one long sequence, whose parts the mask knows
                q, k, v = (tensor.unsqueeze(0) for tensor in (q, k, v))
            if groups > 1:  # [batch, seqlen, key heads, queries of each, dim]
                q = q.unflatten(2, (problem.heads_k, groups))
                k, v = (x.unsqueeze(3).expand(-1, -1, -1, groups, -1) for x in (k, v))
            out = xformers.ops.memory_efficient_attention(
                q, k, v, attn_bias=mask, scale=problem.scale
            )
            return out.reshape(shape)

        return attend


def _mask_of(problem: Problem) -> Any:
    if not problem.varlen:
        return attn_bias.LowerTriangularFromBottomRightMask() if problem.causal else None
    mask = attn_bias.BlockDiagonalMask.from_seqlens(problem.lengths_q, problem.lengths_k)
    return mask.make_causal_from_bottomright() if problem.causal else mask


def peers() -> list[Peer]:
    return [Xformers()]
