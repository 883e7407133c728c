"""flash_attn 3, whose module is called flash_attn_interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import flash_attn_interface

from strobe.peers._flash_attn import FlashAttnPeer

if TYPE_CHECKING:
    from strobe.peers._peer import Peer


class FlashAttn3(FlashAttnPeer):
    name = "flash_attn:3"
    summary = "FlashAttention 3 by its own package, for Hopper"
    library = f"flash_attn {getattr(flash_attn_interface, '__version__', '3')}"
    module = flash_attn_interface


def peers() -> list[Peer]:
    return [FlashAttn3()]
