"""SpargeAttn: leaves out what it predicts to matter little, so the rule need not let it pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import spas_sage_attn

from strobe.peers._torch import Attend, Tensor, TorchPeer

if TYPE_CHECKING:
    from strobe._laboratory import Conditions, Problem
    from strobe.peers._peer import Peer

_LEAST_QUERIES = 128
_DIMS = (64, 128)


class Sparge(TorchPeer):
    name = "spas_sage_attn"
    summary = "SpargeAttn, sparse and quantised, with its own thresholds"
    library = f"spas_sage_attn {getattr(spas_sage_attn, '__version__', '')}"
    devices = ("cuda",)
    features = frozenset({"causal"})

    def missing(self, problem: Problem, device: str) -> list[str]:
        missing = super().missing(problem, device)
        if problem.seqlen_q < _LEAST_QUERIES:
            missing.append(f"fewer than {_LEAST_QUERIES} queries")
        if problem.dim not in _DIMS:
            missing.append(f"a head dim of {problem.dim} (has {', '.join(map(str, _DIMS))})")
        return missing

    def attend(
        self, problem: Problem, tensors: dict[str, Tensor], conditions: Conditions
    ) -> Attend:
        return lambda q, k, v: spas_sage_attn.spas_sage2_attn_meansim_cuda(
            q, k, v, is_causal=problem.causal, scale=problem.scale, tensor_layout="NHD"
        )


def peers() -> list[Peer]:
    return [Sparge()]
