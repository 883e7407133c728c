"""The functions of flash_attn 2.x. A model that imports flash_attn runs on Strobe unchanged after

    import sys
    import strobe.compat.flash_attn
    sys.modules["flash_attn"] = strobe.compat.flash_attn

Every device, dtype and head dim that Strobe has is there, the CPU and float32 among them.
"""

from strobe.compat.flash_attn.flash_attn_interface import (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
    flash_attn_with_kvcache,
)

# That of the interface: some who import it ask.
__version__ = "2.8.3"

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
]
