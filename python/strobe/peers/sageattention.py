"""SageAttention: products of int8, which the rule for exact attention need not let pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sageattention

from strobe.peers._torch import Attend, Tensor, TorchPeer

if TYPE_CHECKING:
    from strobe._laboratory import Conditions, Problem
    from strobe.peers._peer import Peer


class Sage(TorchPeer):
    name = "sageattention"
    summary = "SageAttention, quantised to int8, by the kernel that it chooses"
    library = f"sageattention {getattr(sageattention, '__version__', '')}"
    devices = ("cuda",)
    features = frozenset({"causal", "grouped"})
    most_dim = 128

    def attend(
        self, problem: Problem, tensors: dict[str, Tensor], conditions: Conditions
    ) -> Attend:
        return lambda q, k, v: sageattention.sageattn(
            q, k, v, tensor_layout="NHD", is_causal=problem.causal, sm_scale=problem.scale
        )


def peers() -> list[Peer]:
    return [Sage()]
