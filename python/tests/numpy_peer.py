"""A peer that needs nothing but NumPy."""

import ctypes
import itertools

import numpy as np

import reference
from arrays import CPU, OnDevice
from strobe import peers

_numbers = itertools.count()


class NumPyPeer(peers.Peer):
    """Computes as the reference of these tests does, and is told to do otherwise by subclasses."""

    summary = "for tests"
    library = "numpy"
    devices = ("cpu",)

    def __init__(self):
        self.name = f"numpy:{next(_numbers)}"  # names are taken for as long as the process lives
        self.conditions = None
        peers.join(self)

    def missing(self, problem, device):
        return [] if problem.dtype == "fp32" and not problem.backward else ["other than fp32"]

    def prepare(self, problem, arrays, conditions):
        self.conditions = conditions
        return NumPyRun(self, problem, {name: _as_numpy(a) for name, a in arrays.items()})

    def compute(self, problem, q, k, v):
        out, _ = reference.attention(q, k, v, causal=problem.causal, scale=problem.scale)
        return out.astype(np.float32)


class NumPyRun:
    def __init__(self, peer, problem, arrays):
        self._peer, self._problem, self._arrays = peer, problem, arrays
        self._result = None

    def __call__(self):
        inputs = (self._arrays[name] for name in ("q", "k", "v"))
        self._result = self._peer.compute(self._problem, *inputs)

    def deliver(self):
        if self._result is None:
            return False
        self._arrays["out"][...] = self._result
        self._result = None
        return True


def _as_numpy(array):
    """A view that can be written, which NumPy's own of a foreign array cannot. An emulated GPU's
    memory is the host's."""
    there = np.from_dlpack(OnDevice(array, CPU))
    extent = sum((size - 1) * step for size, step in zip(there.shape, there.strides))
    memory = (ctypes.c_char * (extent + there.itemsize)).from_address(there.ctypes.data)
    return np.ndarray(there.shape, there.dtype, memory, strides=there.strides)
