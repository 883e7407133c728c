"""JAX on the CPU and a GPU, CuPy on a GPU: what is computed, on whose memory, and in what order."""

import ctypes

import numpy as np
import pytest

import strobe
from strobe._libraries import Foreign


class Jax:
    dtypes = ("float32", "float16", "bfloat16")

    def __init__(self, kind):
        self.jax = pytest.importorskip("jax", reason="JAX is not installed")
        try:
            self.device = self.jax.devices(kind)[0]
        except RuntimeError:
            pytest.skip(f"JAX sees no {kind.upper()}")

    def array(self, array, dtype="float32"):
        return self.jax.device_put(array, self.device).astype(dtype)

    def numpy(self, array):
        return np.asarray(array.astype("float32"))

    def pointer(self, array):
        return array.unsafe_buffer_pointer()

    def late_ones(self, shape):
        """Ones that are still being computed."""
        lax, jnp = self.jax.lax, self.jax.numpy

        @self.jax.jit
        def slowly(x):
            x = lax.fori_loop(0, 200, lambda _, y: jnp.sin(y), x)
            return jnp.ones(shape) + 0 * x[0]

        x = self.array(np.zeros(1 << 22, np.float32))
        slowly(x).block_until_ready()  # compiled
        return slowly(x)


class CuPy:
    dtypes = ("float32", "float16")

    def __init__(self):
        self.cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
        if not self.cupy.cuda.is_available():
            pytest.skip("CuPy sees no GPU")

    def array(self, array, dtype="float32"):
        return self.cupy.asarray(array, dtype=dtype)

    def numpy(self, array):
        return self.cupy.asnumpy(array).astype(np.float32)

    def pointer(self, array):
        return array.data.ptr

    def late_ones(self, shape):
        x, ones = self.cupy.zeros(1 << 26, np.float32), self.cupy.zeros(shape, np.float32)
        self.cupy.cuda.get_current_stream().synchronize()
        for _ in range(50):
            self.cupy.sin(x, out=x)
        ones += 1 + x[0]
        return ones


PLACES = {
    "JAX on the CPU": lambda: Jax("cpu"),
    "JAX on a GPU": lambda: Jax("gpu"),
    "CuPy": CuPy,
}


@pytest.fixture(params=PLACES.values(), ids=PLACES)
def library(request):
    return request.param()


TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 6e-2}


def assert_same(library, result, on_cpu, dtype="float32"):
    np.testing.assert_allclose(library.numpy(result), on_cpu, atol=TOLERANCE[dtype], rtol=0)


def both_passes(dout, arrays, **options):
    """(out, lse), and the gradients."""
    results = strobe.attention(**arrays, **options, return_lse=True)
    out, lse = results
    return results, strobe.attention_backward(dout, **arrays, out=out, lse=lse, **options)


def test_results_and_gradients_are_those_of_numpy(library, draw):
    given = {"q": draw(2, 37, 4, 32), "k": draw(2, 41, 2, 32), "v": draw(2, 41, 2, 32)}
    for dtype in library.dtypes:
        dout = library.array(draw(2, 37, 4, 32), dtype)
        there = {name: library.array(array, dtype) for name, array in given.items()}
        here = {name: library.numpy(array) for name, array in there.items()}
        (out, lse), found = both_passes(dout, there, causal=True)
        expected, gradients = both_passes(library.numpy(dout), here, causal=True)
        assert type(out) is type(lse) is type(dout)
        assert (str(out.dtype), str(lse.dtype)) == (dtype, "float32")
        assert out.__dlpack_device__() == lse.__dlpack_device__() == dout.__dlpack_device__()
        assert found.bias is found.sinks is None
        for result, on_cpu in zip((out, lse, *found[:3]), (*expected, *gradients[:3])):
            assert_same(library, result, on_cpu, dtype)


def test_features_have_gradients(library, draw):
    given = {
        "q": draw(1, 9, 4, 16),
        "k": draw(1, 11, 4, 16),
        "v": draw(1, 11, 4, 16),
        "bias": draw(1, 4, 9, 11),
        "sinks": draw(4),
    }
    options = {"window": (3, None), "dropout": 0.2, "dropout_seed": 7}
    there = {name: library.array(array) for name, array in given.items()}
    _, expected = both_passes(given["q"], given, **options)
    _, found = both_passes(there["q"], there, **options)
    for result, on_cpu in zip(found, expected):
        assert_same(library, result, on_cpu)


def data_pointer(exported):
    """Where the data lies of what speaks DLPack, or of its capsule."""
    capsule = exported.__dlpack__() if hasattr(exported, "__dlpack__") else exported
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return ctypes.c_void_p.from_address(pointer(capsule, b"dltensor")).value


def test_nothing_is_copied(library, draw, monkeypatch):
    q = library.array(draw(2, 300, 4, 64))
    read, made = [], []
    export, empty = Foreign.export, Foreign.empty

    def seen_export(self, array):
        exported = export(self, array)
        read.append(data_pointer(exported))
        return exported

    def seen_empty(self, *arguments):
        array = empty(self, *arguments)
        made.append(data_pointer(array))
        return array

    monkeypatch.setattr(Foreign, "export", seen_export)
    monkeypatch.setattr(Foreign, "empty", seen_empty)
    out = strobe.attention(q, q, q)
    assert library.pointer(q) in read
    assert set(read) <= {library.pointer(q), *made}
    assert library.pointer(out) in made


def test_waits_for_what_is_still_computed(library):
    shape = (1, 64, 2, 32)
    q = library.array(np.zeros(shape, np.float32))
    strobe.attention(q, q, q)  # compiles the kernel
    out = strobe.attention(q, q, library.late_ones(shape))
    np.testing.assert_allclose(library.numpy(out), np.ones(shape), atol=1e-6)


def test_cupy_on_a_stream_of_its_own():
    library = CuPy()
    shape = (1, 64, 2, 32)
    with library.cupy.cuda.Stream(non_blocking=True):
        q = library.array(np.zeros(shape, np.float32))
        strobe.attention(q, q, q)
        out = strobe.attention(q, q, library.late_ones(shape))
        again = strobe.attention(out, out, out)  # ours is what theirs goes on with
        np.testing.assert_allclose(library.numpy(again), np.ones(shape), atol=1e-6)


def test_cupy_with_strides():
    library = CuPy()
    packed = np.random.default_rng(1).standard_normal((2, 33, 3, 4, 16), dtype=np.float32)
    there = library.array(packed)
    out = strobe.attention(*(there[:, :, i] for i in range(3)))
    assert_same(library, out, strobe.attention(*(packed[:, :, i] for i in range(3))))
    with pytest.raises(ValueError, match=r"^q\b"):
        strobe.attention(there[:, :, 0, :, ::2], *[there[:, :, 1, :, :8]] * 2)


def test_errors_name_the_argument(library, draw):
    q, k = library.array(draw(2, 5, 4, 8)), library.array(draw(2, 7, 2, 8))
    for name, error, changes in [
        ("q", TypeError, {"q": q.astype("int32")}),
        ("q", ValueError, {"q": q[0]}),
        ("k", ValueError, {"k": k[:, :, :, :4]}),
        ("v", TypeError, {"v": k.astype("float16")}),
        ("v", ValueError, {"v": k[:1]}),
        ("sinks", ValueError, {"sinks": library.array(draw(3))}),
        ("cu_seqlens_q", ValueError, {"cu_seqlens_k": library.array(draw(3), "int32")}),
        ("window", ValueError, {"window": (-2, 0)}),
    ]:
        with pytest.raises(error, match=rf"^{name}\b"):
            strobe.attention(**{"q": q, "k": k, "v": k, **changes})


@pytest.mark.parametrize("place", ["JAX on a GPU", "CuPy"])
def test_names_what_is_on_another_device(place, draw):
    library = PLACES[place]()
    here = draw(1, 5, 2, 8)
    there = library.array(here)
    with pytest.raises(ValueError, match=r"^k is on cpu"):
        strobe.attention(there, here, there)
    with pytest.raises(ValueError, match=r"^v is on cuda:0"):
        strobe.attention(here, here, there)


def test_jax_says_that_it_cannot_be_traced(draw):
    library = Jax("cpu")
    q = library.array(draw(1, 5, 2, 8))
    with pytest.raises(TypeError, match=r"^q\b"):
        library.jax.jit(lambda x: strobe.attention(x, x, x))(q)
