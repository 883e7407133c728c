"""The way to a GPU and back, on one that is emulated: its memory is the host's."""

import os

import numpy as np
import pytest

import strobe
from arrays import OnDevice
from numpy_peer import NumPyPeer

if "STROBE_EMULATED_GPU" not in os.environ:
    pytest.skip("the emulated GPU is not asked for", allow_module_level=True)


def on_gpu(*arrays):
    return [OnDevice(array) for array in arrays]


def test_computes_there(draw):
    q, k, v = draw(1, 20, 2, 16), draw(1, 24, 1, 16), draw(1, 24, 1, 16)
    out, lse = strobe.attention(*on_gpu(q, k, v), causal=True, return_lse=True)
    assert out.__dlpack_device__() == (2, 0)
    expected, expected_lse = strobe.attention(q, k, v, causal=True, return_lse=True)
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-5)
    np.testing.assert_allclose(lse.numpy(), expected_lse, atol=1e-5)

    gradients = strobe.attention_backward(*on_gpu(q, q, k, v), out, lse, causal=True)
    truth = strobe.attention_backward(q, q, k, v, expected, expected_lse, causal=True)
    for result, on_cpu in zip(gradients[:3], truth):
        np.testing.assert_allclose(result.numpy(), on_cpu, atol=1e-4)


def test_explains_the_kernel(draw):
    q = OnDevice(draw(1, 20, 2, 16))
    chosen = strobe.explain(q, q, q)
    assert (chosen.device, chosen.implementation) == ("cuda:0", "cuda:flash")
    assert chosen.kernel == "portable_forward"
    assert strobe.explain(q, q, q, implementation="flash").implementation == "cuda:flash"


def test_offsets_are_not_read(draw):
    q = draw(20, 2, 16)
    offsets = np.array([0, 13, 20], np.int32)
    expected = strobe.attention(q, q, q, cu_seqlens_q=offsets)
    q_there, offsets_there = on_gpu(q, offsets)
    with pytest.raises(ValueError, match=r"^max_seqlen_q\b"):
        strobe.attention(q_there, q_there, q_there, cu_seqlens_q=offsets_there)
    out = strobe.attention(
        q_there, q_there, q_there, cu_seqlens_q=offsets_there, max_seqlen_q=13, max_seqlen_k=13
    )
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-5)


def test_what_is_elsewhere_is_named(draw):
    q = draw(1, 20, 2, 16)
    (there,) = on_gpu(q)
    with pytest.raises(ValueError, match=r"^k is on cpu"):
        strobe.attention(there, q, there)
    with pytest.raises(ValueError, match=r"^v is on cuda:1"):
        strobe.attention(there, there, OnDevice(q, (2, 1)))
    with pytest.raises(ValueError, match=r"^implementation\b"):
        strobe.attention(there, there, there, implementation="oracle")


def test_a_peer_is_timed_there():
    pytest.importorskip("strobe._laboratory", reason="built without the laboratory")

    class There(NumPyPeer):
        devices = ("cuda",)

    peer = There()
    record, ours = strobe.compare(
        "b1 sq40 h2 d16 fp32", implementations=[peer.name, "flash"], device="cuda", repeats=2
    )
    assert record["implementation"] == f"cuda:{peer.name}"
    assert record["status"] == ours["status"] == "ok", record.get("reason")
    assert record["error"]["rule"] == "pass"
    assert record["sampling"]["clock"] == "events"  # no graph of it was made
    assert peer.conditions.device == "cuda:0" and peer.conditions.stream != 0
