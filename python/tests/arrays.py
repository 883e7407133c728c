"""Arrays of other libraries, as far as a call can tell."""

import ctypes

import numpy as np


class SpeaksDLPack:
    """What is no array of NumPy's, but can be handed over: as JAX's and CuPy's are."""

    def __init__(self, array):
        self._array = array

    @property
    def dtype(self):
        return self._array.dtype

    def __dlpack__(self, stream=None, **_):
        return self._array.__dlpack__()

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __array_namespace__(self):
        return type("namespace", (), {"from_dlpack": staticmethod(self._received)})

    @staticmethod
    def _received(array):
        return SpeaksDLPack(np.from_dlpack(array))

    def numpy(self):
        return self._array


CPU, GPU = (1, 0), (2, 0)


class OnDevice(SpeaksDLPack):
    """Says that it lies on another device, in the capsule too. With the emulated GPU, whose memory
    is the host's, that is as good as true."""

    def __init__(self, array, device=GPU):
        super().__init__(array)
        self._device = device

    def __dlpack__(self, stream=None, **_):
        capsule = self._array.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        # A DLManagedTensor begins with the pointer to the data; the device follows.
        device = pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)
        (ctypes.c_int32 * 2).from_address(device)[:] = self._device
        return capsule

    def __dlpack_device__(self):
        return self._device

    @staticmethod
    def _received(array):
        # Copied, for NumPy cannot hand on what was handed to it.
        return OnDevice(np.from_dlpack(OnDevice(array, CPU)).copy())
