"""Other libraries' attention, to be compared with ours: see `strobe.compare`.

A library is a file of this folder by its name. Those that can be imported take part; `absent` says
why the others do not. A peer of your own is a `Peer`, given to `join`.
"""

from __future__ import annotations

import functools
import importlib

from strobe.peers._laboratory import Conditions, Problem, laboratory
from strobe.peers._peer import Peer, Run

__all__ = ["Conditions", "Peer", "Problem", "Run", "absent", "found", "join", "join_all"]

_LIBRARIES = (
    "torch",
    "flash_attn",
    "flash_attn_interface",
    "xformers",
    "sageattention",
    "spas_sage_attn",
)


@functools.cache
def _search() -> tuple[dict[str, Peer], dict[str, str]]:
    found: dict[str, Peer] = {}
    absent: dict[str, str] = {}
    for library in _LIBRARIES:
        try:
            module = importlib.import_module(f"strobe.peers.{library}")
            found.update((peer.name, peer) for peer in module.peers())
        except Exception as error:  # a library that is broken may raise anything
            absent[library] = str(error) or type(error).__name__
    return found, absent


def found() -> dict[str, Peer]:
    """The peers whose libraries can be imported, by name."""
    return dict(_search()[0])


def absent() -> dict[str, str]:
    """The libraries that cannot be imported, with the reason."""
    return dict(_search()[1])


def join(peer: Peer) -> None:
    """Makes a peer known to everything that compares, verifies and times in this process, under its
    name on the CPU, and with "cuda:" before it on GPUs.

    Raises ValueError if the name is taken.
    """
    for device in peer.devices:
        laboratory().join(peer, device)


@functools.cache
def join_all() -> None:
    """`join` for everything that was found, once."""
    for peer in found().values():
        join(peer)
