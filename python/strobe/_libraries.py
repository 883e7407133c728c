"""The libraries whose arrays we compute on: how theirs are read, made and given back.

None is imported here before an array of it is seen, and then it is imported already.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from strobe import _native

# Arrays of any library; what they must speak is checked where they are read.
Array = Any
Arrays = dict[str, Array]
Settings = dict[str, Any]


class Library:
    """What the native module and the functions of the package need of a library."""

    # The capsule of DLPack's functions for C, where there is one: arrays of the type of q are read
    # by it, and others by `export`.
    exchange: Any = None

    def export(self, array: Array) -> Any:
        """What the native module reads the array by: DLPack, its capsule, or a buffer."""
        return array

    def empty(self, shape: tuple[int, ...], dtype: str | None, like: Array) -> Array:
        """A new array on the device of `like`, and of its dtype if None."""
        raise NotImplementedError

    def give(self, array: Array) -> Array:
        """What `empty` made, as the caller is to get it."""
        return array

    def stream(self, like: Array) -> int:
        """The CUDA stream that work on this array's GPU is ordered on."""
        return 0

    def forward(self, arrays: Arrays, settings: Settings) -> tuple[Array, Array | None]:
        return _native.forward(self, arrays, settings)

    def backward(self, arrays: Arrays, settings: Settings) -> tuple[Array | None, ...]:
        return _native.backward(self, arrays, settings)


class NumPy(Library):
    """Its arrays, and buffers of any other kind."""

    def __init__(self) -> None:
        import numpy

        self._numpy = numpy

    def _array(self, array: Array) -> Array:
        if isinstance(array, self._numpy.ndarray) or hasattr(array, "__dlpack__"):
            return array
        return self._numpy.asarray(array) if _is_buffer(array) else array

    def export(self, array: Array) -> Any:
        array = self._array(array)
        if not isinstance(array, self._numpy.ndarray) or array.dtype.char in "fei":
            return array
        if array.dtype == self._numpy.uint16:
            raise TypeError("it is of uint16")
        # Of ml_dtypes, which neither DLPack nor buffers can name: the native module takes another
        # array's uint16 for its bits.
        return array.view(self._numpy.uint16) if array.dtype.name == "bfloat16" else array

    def empty(self, shape: tuple[int, ...], dtype: str | None, like: Array) -> Array:
        return self._numpy.empty(shape, dtype or self._array(like).dtype)


class Torch(Library):
    def __init__(self, tensor_type: type) -> None:
        import torch
        from torch.utils.dlpack import to_dlpack

        self._torch = torch
        # Others may have no memory: those of the tracers among them.
        self._is_plain = tensor_type in (torch.Tensor, torch.nn.Parameter)
        self._to_dlpack = to_dlpack
        self.exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)

    def export(self, array: Array) -> Any:
        # Not by __dlpack__, which refuses what requires a gradient.
        return self._to_dlpack(array) if isinstance(array, self._torch.Tensor) else array

    def empty(self, shape: tuple[int, ...], dtype: str | None, like: Array) -> Array:
        theirs = getattr(self._torch, dtype) if dtype else like.dtype
        return self._torch.empty(shape, dtype=theirs, device=like.device)

    def stream(self, like: Array) -> int:
        return self._torch.cuda.current_stream(like.device).cuda_stream

    def forward(self, arrays: Arrays, settings: Settings) -> tuple[Array, Array | None]:
        if not self._is_plain or self._torch.compiler.is_compiling():
            from strobe.torch import traceable_forward

            return traceable_forward(arrays, settings)
        if self._torch.is_grad_enabled() and _requires_gradient(arrays):
            from strobe.torch import differentiable_forward

            return differentiable_forward(arrays, settings)
        return _native.forward(self, arrays, settings)


def _requires_gradient(arrays: Arrays) -> bool:
    for array in arrays.values():  # any() would take twice as long
        if array is not None and getattr(array, "requires_grad", False):
            return True
    return False


class Foreign(Library):
    """Whoever else speaks DLPack, JAX and CuPy among them. Their arrays may be immutable, so
    results are ours until they are done, and then handed over."""

    _names: ClassVar = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "uint8": "uint8"}

    def __init__(self, array: Array) -> None:
        self._gpu = _gpu_of(array)
        self._from_dlpack = _namespace(array).from_dlpack

    def export(self, array: Array) -> Any:
        if self._gpu is None or _gpu_of(array) != self._gpu:
            return array
        # Whoever has it sees to it that our stream waits for what it still computes.
        return array.__dlpack__(stream=_native.stream(self._gpu))

    def empty(self, shape: tuple[int, ...], dtype: str | None, like: Array) -> Array:
        return _native.empty(shape, self._names[dtype or str(like.dtype)], self._gpu)

    def give(self, array: Array) -> Array:
        if self._gpu is not None:
            _native.wait(self._gpu)  # for the new owner knows nothing of our stream
        return self._from_dlpack(array)

    def stream(self, like: Array) -> int:
        return 0 if self._gpu is None else _native.stream(self._gpu)


def _gpu_of(array: Array) -> int | None:
    """The number of the GPU that it is on."""
    if not hasattr(array, "__dlpack_device__"):
        return None
    kind, index = array.__dlpack_device__()
    return index if kind in (2, 13) else None  # kDLCUDA, kDLCUDAManaged


def _namespace(array: Array) -> Any:
    """The module that has the functions of the array's library."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    return sys.modules[type(array).__module__.partition(".")[0]]


def _is_buffer(array: Array) -> bool:
    if hasattr(array, "__array_interface__"):
        return True
    try:
        memoryview(array)
    except TypeError:
        return False
    return True


_known: dict[type, Library] = {}


def library_of(array: Array, name: str) -> Library:
    """That of an argument of this name, which decides for all the others."""
    return _known.get(type(array)) or _find(array, name)


def _find(array: Array, name: str) -> Library:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    is_numpy = numpy is not None and isinstance(array, numpy.ndarray)
    if torch is not None and isinstance(array, torch.Tensor):
        _known[type(array)] = Torch(type(array))
    elif hasattr(array, "__dlpack__") and not is_numpy:
        return Foreign(array)
    elif _is_buffer(array):
        _known[type(array)] = NumPy()
    else:
        raise TypeError(
            f"{name} is of type {type(array).__name__}, which speaks neither DLPack nor the buffer "
            "protocol; give an array of NumPy, PyTorch, JAX or CuPy"
        )
    return _known[type(array)]
