"""What another library must offer to be compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from strobe._laboratory import Conditions, Problem


class Run(Protocol):
    """One pass over given arrays, ready to be timed."""

    def __call__(self) -> None:
        """Computes, and keeps the results. This is what is timed."""

    def deliver(self) -> bool:
        """Copies the results to the arrays that are meant for them, and forgets them. False if
        there are none. It is not timed, for the library's users would not do it."""


class Peer(ABC):
    """A library's way to compute attention."""

    name: str  # "torch:flash", by which --impl knows it
    summary: str  # a line on it
    library: str  # with its version, "torch 2.9.0": every record has it
    devices: tuple[str, ...] = ("cpu", "cuda")

    @abstractmethod
    def missing(self, problem: Problem, device: str) -> list[str]:
        """What keeps it from the problem on "cpu" or "cuda", a phrase for each; empty if nothing
        does."""

    @abstractmethod
    def prepare(self, problem: Problem, arrays: dict[str, Any], conditions: Conditions) -> Run:
        """Gets ready for these arrays, which speak DLPack: q, k, v and what else the problem has,
        named as in `strobe.attention`, and the results, "out", or "dq", "dk", "dv", "dbias" and
        "dsinks". It is not timed, and neither is the first call of what it returns.

        On a GPU the work belongs on `conditions.stream`. What is raised here or by the run becomes
        a row of the table: NotImplementedError as unsupported, MemoryError as out of memory.
        """
