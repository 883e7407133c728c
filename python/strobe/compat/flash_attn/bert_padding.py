"""Padded batches to packed ones and back, as flash_attn 2.7 and later do it."""

from __future__ import annotations

import torch
from torch import Tensor


def unpad_input(
    hidden_states: Tensor, attention_mask: Tensor, unused_mask: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, int, Tensor]:
    """The rows of [batch, seqlen, ...] where the masks [batch, seqlen] are not 0.

    Returns:
        The rows, [total, ...]; their indices in [batch * seqlen]; the offsets of the sequences,
        int32 [batch + 1]; the longest length; and the lengths without those of unused_mask.
    """
    kept = attention_mask if unused_mask is None else attention_mask + unused_mask
    lengths = kept.sum(-1, dtype=torch.int32)
    offsets = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    indices = kept.flatten().nonzero().flatten()
    return (
        hidden_states.flatten(0, 1)[indices],
        indices,
        offsets,
        int(lengths.max().item()),
        attention_mask.sum(-1, dtype=torch.int32),
    )


def pad_input(hidden_states: Tensor, indices: Tensor, batch: int, seqlen: int) -> Tensor:
    """Back to [batch, seqlen, ...], with zeros between."""
    rows = index_put_first_axis(hidden_states, indices, batch * seqlen)
    return rows.unflatten(0, (batch, seqlen))


def index_first_axis(rows: Tensor, indices: Tensor) -> Tensor:
    """Rows at these indices."""
    return rows[indices]


def index_put_first_axis(values: Tensor, indices: Tensor, first_axis_dim: int) -> Tensor:
    """As many rows, zero but for `values` at these indices."""
    rows = values.new_zeros((first_axis_dim, *values.shape[1:]))
    return rows.index_put((indices,), values)
