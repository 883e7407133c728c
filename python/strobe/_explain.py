"""What would compute a problem, and what there is to compute with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from strobe import _native
from strobe._attention import Options, split
from strobe._libraries import Array, library_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Explanation(NamedTuple):
    """Which implementation was chosen for a problem; printed, why."""

    problem: str
    device: str
    implementation: str
    summary: str
    kernel: str  # which one, where the implementation has several
    tuning: dict[str, str]
    workspace_bytes: int
    passed_over: dict[str, list[str]]  # what those lack that would have come before it

    def __str__(self) -> str:
        lines = [
            f"{self.problem} on {self.device}: {self.implementation}",
            f"  {self.summary}",
        ]
        if self.kernel:
            lines.append(f"  kernel {self.kernel}")
        if self.tuning:
            lines.append("  " + ", ".join(f"{name} {value}" for name, value in self.tuning.items()))
        lines.append(f"  workspace {self.workspace_bytes} bytes")
        for name, missing in self.passed_over.items():
            why = f"lacks {', '.join(missing)}" if missing else "was not asked for"
            lines.append(f"  {name} {why}")
        return "\n".join(lines)


def explain(
    q: Array,
    k: Array,
    v: Array,
    *,
    backward: bool = False,
    **options: Unpack[Options],
) -> Explanation:
    """Plans what `attention` would compute for these arguments, or its gradients, and says how.

    Raises what `attention` would, NotImplementedError with what every implementation lacks.
    """
    arrays, settings = split(q, k, v, options)
    return Explanation(**_native.explain(library_of(q, "q"), arrays, settings, backward))


def implementations() -> dict[str, str]:
    """Names of all implementations with a line on each, in order of preference."""
    return _native.implementations()


def info() -> dict[str, Any]:
    """This machine as Strobe sees it: version, cpu, isa, threads, gpus, the file of nvrtc, which
    compiles their kernels, and no_gpu_because."""
    return _native.info()
