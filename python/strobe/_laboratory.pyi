"""The native module of the laboratory: the program, and what its guests are told."""

from typing import Any, final

@final
class Problem:
    """What is to be computed: see the text form in `strobe list --help`."""

    def __init__(self, text: str) -> None: ...
    @property
    def backward(self) -> bool: ...
    @property
    def batch(self) -> int: ...
    @property
    def seqlen_q(self) -> int: ...
    @property
    def seqlen_k(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def heads_k(self) -> int: ...
    @property
    def dim(self) -> int: ...
    @property
    def dim_v(self) -> int: ...
    @property
    def dtype(self) -> str:
        """ "fp32", "fp16" or "bf16"."""

    @property
    def scale(self) -> float: ...
    @property
    def causal(self) -> bool:
        """Aligned to the bottom right."""

    @property
    def window(self) -> tuple[int, int]:
        """Keys to the left and to the right, aligned to the bottom right; -1 is no limit."""

    @property
    def effective_window(self) -> tuple[int, int]:
        """With the causal mask in it."""

    @property
    def softcap(self) -> float: ...
    @property
    def alibi(self) -> bool: ...
    @property
    def sinks(self) -> bool: ...
    @property
    def bias(self) -> bool: ...
    @property
    def dropout(self) -> float: ...
    @property
    def varlen(self) -> bool: ...
    @property
    def lengths_q(self) -> list[int]: ...
    @property
    def lengths_k(self) -> list[int]: ...

@final
class Conditions:
    """How and where a guest is to compute."""

    @property
    def device(self) -> str:
        """ "cpu" or "cuda:0"."""

    @property
    def stream(self) -> int:
        """The CUDA stream that is timed; 0 on the CPU."""

    @property
    def threads(self) -> int: ...
    @property
    def deterministic(self) -> bool: ...
    @property
    def tf32(self) -> bool: ...

def join(peer: Any, device: str) -> None:
    """Puts a `strobe.peers.Peer` into the registry."""

def run(program: str, arguments: list[str]) -> int:
    """What the program does with these arguments; its exit status."""

def run_and_report(program: str, arguments: list[str]) -> int:
    """The same with errors as sentences on the standard error."""

def setting_names() -> list[str]:
    """Options that set one property of a problem."""
