"""The native module. Arrays and settings are those of strobe.attention, by name."""

from typing import Any

from strobe._libraries import Array, Arrays, Library, Settings

def forward(library: Library, arrays: Arrays, settings: Settings) -> tuple[Array, Any]: ...
def backward(
    library: Library, arrays: Arrays, settings: Settings
) -> tuple[Array, Array, Array, Array | None, Array | None]: ...
def time_alone(library: Library, arrays: Arrays, settings: Settings, calls: int) -> float:
    """Seconds of a forward pass on the CPU with no Python around it: the mean of so many calls."""

def explain(
    library: Library, arrays: Arrays, settings: Settings, backward: bool
) -> dict[str, Any]: ...
def implementations() -> dict[str, str]: ...
def info() -> dict[str, Any]: ...
def version() -> str: ...
def clear_cache() -> None:
    """Forgets plans and frees the memory that calls on the CPU computed with."""

def empty(shape: tuple[int, ...], dtype: str, gpu: int | None) -> Array:
    """Memory of our own as an array that speaks DLPack, on the CPU if `gpu` is None."""

def stream(gpu: int) -> int:
    """The CUDA stream of our own on that GPU."""

def wait(gpu: int) -> None:
    """Until what is on that stream is done."""
