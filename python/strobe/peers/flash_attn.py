"""flash_attn 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import flash_attn

from strobe.peers._flash_attn import FlashAttnPeer

if TYPE_CHECKING:
    from strobe.peers._peer import Peer


class FlashAttn(FlashAttnPeer):
    name = "flash_attn:2"
    summary = "FlashAttention 2 by its own package"
    library = f"flash_attn {getattr(flash_attn, '__version__', '')}"
    module = flash_attn
    features = FlashAttnPeer.features | {"alibi"}


def peers() -> list[Peer]:
    if flash_attn.__name__.startswith("strobe."):
        raise ImportError("the flash_attn of this process is strobe.compat.flash_attn")
    return [FlashAttn()]
