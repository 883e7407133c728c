"""What is wrong is said in an error that begins with the argument's name; nothing ever crashes."""

import array

import numpy as np
import pytest

import strobe
from arrays import OnDevice, SpeaksDLPack

F32 = np.float32


def zeros(*shape, dtype=F32):
    return np.zeros(shape, dtype)


Q, K = zeros(2, 5, 4, 8), zeros(2, 7, 2, 8)
PACKED = zeros(12, 4, 8)
OFFSETS = np.array([0, 5, 12], np.int32)


def changed(**changes):
    """A call that would be right, but for these arguments."""
    return {"q": Q, "k": K, "v": K, **changes}


def packed(**changes):
    return {"q": PACKED, "k": PACKED, "v": PACKED, "cu_seqlens_q": OFFSETS, **changes}


def offsets(*values, dtype=np.int32):
    return np.array(values, dtype)


BAD = [
    # What is no array, or of no dtype that there is.
    ("q", TypeError, changed(q=None)),
    ("q", TypeError, changed(q=[[1.0, 2.0]])),
    ("q", TypeError, changed(q="q")),
    ("q", TypeError, changed(q=3)),
    ("q", TypeError, changed(q=object())),
    ("q", TypeError, changed(q=np.float32)),
    ("k", TypeError, changed(k=None)),
    ("k", TypeError, changed(k=K.tolist())),
    ("v", TypeError, changed(v=np.empty(K.shape, object))),
    ("q", TypeError, changed(q=Q.astype(np.float64))),
    ("q", TypeError, changed(q=Q.astype(np.int32))),
    ("q", TypeError, changed(q=Q.astype(np.int64))),
    ("q", TypeError, changed(q=Q.astype(np.uint16))),
    ("q", TypeError, changed(q=memoryview(Q.astype(np.uint16)))),
    ("q", TypeError, changed(q=SpeaksDLPack(Q.astype(np.uint16)))),
    ("q", TypeError, changed(q=Q.astype(np.uint8))),
    ("q", TypeError, changed(q=Q.astype(bool))),
    ("q", TypeError, changed(q=Q.astype(np.complex64))),
    ("q", TypeError, changed(q=Q.astype(">f4"))),
    ("q", TypeError, changed(q=Q.astype("U4"))),
    ("q", TypeError, changed(q=Q.astype("datetime64[s]"))),
    ("k", TypeError, changed(k=K.astype(np.float16))),
    ("v", TypeError, changed(v=K.astype(np.float16))),
    ("q", TypeError, changed(q=np.zeros(Q.shape, [("x", F32), ("y", F32)])["x"].view("V4"))),
    # Shapes.
    ("q", ValueError, changed(q=array.array("f", [0.0] * 8))),
    ("q", ValueError, changed(q=zeros())),
    ("q", ValueError, changed(q=zeros(8))),
    ("q", ValueError, changed(q=zeros(5, 4, 8))),
    ("q", ValueError, changed(q=zeros(1, 2, 5, 4, 8))),
    ("q", ValueError, changed(q=zeros(1, 1, 1, 2, 5, 4, 8))),
    ("k", ValueError, changed(k=zeros(7, 2, 8))),
    ("v", ValueError, changed(v=zeros(7, 2, 8))),
    ("k", ValueError, changed(k=zeros(3, 7, 2, 8), v=zeros(3, 7, 2, 8))),
    ("v", ValueError, changed(v=zeros(3, 7, 2, 8))),
    ("v", ValueError, changed(v=zeros(2, 6, 2, 8))),
    ("v", ValueError, changed(v=zeros(2, 7, 1, 8))),
    ("k", ValueError, changed(k=zeros(2, 7, 2, 9))),
    ("k", ValueError, changed(k=zeros(2, 7, 3, 8), v=zeros(2, 7, 3, 8))),
    ("k", ValueError, changed(k=zeros(2, 7, 8, 8), v=zeros(2, 7, 8, 8))),
    ("q", ValueError, changed(q=zeros(2, 5, 0, 8))),
    ("k", ValueError, changed(k=zeros(2, 7, 0, 8), v=zeros(2, 7, 0, 8))),
    ("q", ValueError, changed(q=zeros(2, 5, 4, 0), k=zeros(2, 7, 2, 0))),
    ("q", ValueError, changed(q=zeros(2, 5, 4, 513), k=zeros(2, 7, 2, 513))),
    ("v", ValueError, changed(v=zeros(2, 7, 2, 0))),
    ("v", ValueError, changed(v=zeros(2, 7, 2, 600))),
    # Memory.
    ("q", ValueError, changed(q=zeros(2, 5, 4, 16)[..., ::2])),
    ("k", ValueError, changed(k=zeros(2, 7, 8, 2).transpose(0, 1, 3, 2))),
    ("v", ValueError, changed(v=zeros(2, 7, 2, 8)[..., ::-1])),
    ("q", ValueError, changed(q=np.broadcast_to(zeros(2, 5, 4, 1), Q.shape))),
    (
        "q",
        ValueError,
        changed(q=np.frombuffer(bytes(Q.nbytes + 1), F32, offset=1, count=Q.size).reshape(Q.shape)),
    ),
    # Devices.
    ("k", ValueError, changed(k=OnDevice(K))),
    ("v", ValueError, changed(v=OnDevice(K, (2, 1)))),
    ("k", ValueError, changed(k=OnDevice(K, (8, 0)))),
    ("cu_seqlens_q", ValueError, packed(cu_seqlens_q=OnDevice(OFFSETS))),
    ("sinks", ValueError, changed(sinks=OnDevice(zeros(4)))),
    # Features.
    ("bias", ValueError, changed(bias=zeros(5, 7))),
    ("bias", ValueError, changed(bias=zeros(2, 4, 5, 8))),
    ("bias", ValueError, changed(bias=zeros(2, 3, 5, 7))),
    ("bias", ValueError, changed(bias=zeros(2, 4, 4, 7))),
    ("bias", TypeError, changed(bias=zeros(2, 4, 5, 7, dtype=np.float16))),
    ("bias", TypeError, changed(bias=zeros(2, 4, 5, 7, dtype=bool))),
    ("bias", TypeError, changed(bias=0.5)),
    ("sinks", ValueError, changed(sinks=zeros(3))),
    ("sinks", ValueError, changed(sinks=zeros(1, 4))),
    ("sinks", TypeError, changed(sinks=zeros(4, dtype=np.float64))),
    ("sinks", TypeError, changed(sinks=zeros(4, dtype=np.float16))),
    ("alibi_slopes", ValueError, changed(alibi_slopes=zeros(2))),
    ("alibi_slopes", ValueError, changed(alibi_slopes=zeros(3, 4))),
    ("alibi_slopes", TypeError, changed(alibi_slopes=[0.5] * 4)),
    # Lengths.
    ("cu_seqlens_q", TypeError, packed(cu_seqlens_q=[0, 5, 12])),
    ("cu_seqlens_q", TypeError, packed(cu_seqlens_q=OFFSETS.astype(np.int64))),
    ("cu_seqlens_k", TypeError, packed(cu_seqlens_k=OFFSETS.astype(F32))),
    ("cu_seqlens_q", ValueError, packed(cu_seqlens_q=OFFSETS[None])),
    ("cu_seqlens_q", ValueError, packed(cu_seqlens_q=offsets())),
    ("cu_seqlens_q", ValueError, packed(cu_seqlens_q=offsets(0))),
    ("cu_seqlens_k", ValueError, packed(cu_seqlens_k=offsets(0, 12))),
    ("cu_seqlens_q", ValueError, packed(cu_seqlens_q=offsets(1, 5, 12))),
    ("cu_seqlens_q", ValueError, packed(cu_seqlens_q=offsets(0, 7, 5))),
    ("cu_seqlens_q", ValueError, packed(cu_seqlens_q=offsets(0, -3, 5))),
    ("cu_seqlens_q", ValueError, packed(cu_seqlens_q=offsets(0, 5, 13))),
    ("cu_seqlens_k", ValueError, packed(cu_seqlens_k=offsets(0, 5, 2**31 - 1))),
    ("cu_seqlens_q", ValueError, packed(cu_seqlens_q=offsets(0, 0, 5, 0, 12, 0)[::2])),
    ("cu_seqlens_q", ValueError, changed(cu_seqlens_k=OFFSETS)),
    ("q", ValueError, changed(cu_seqlens_q=OFFSETS)),
    ("v", ValueError, packed(v=zeros(11, 4, 8))),
    ("cu_seqlens_q", ValueError, packed(max_seqlen_q=6)),
    ("q", ValueError, packed(max_seqlen_q=3)),
    ("max_seqlen_q", ValueError, packed(max_seqlen_q=-1)),
    ("max_seqlen_q", ValueError, packed(max_seqlen_q=2**31)),
    ("max_seqlen_q", TypeError, packed(max_seqlen_q=7.0)),
    ("max_seqlen_k", ValueError, packed(max_seqlen_k=2**80)),
    # Numbers.
    ("causal", TypeError, changed(causal=1)),
    ("causal", TypeError, changed(causal="yes")),
    ("window", TypeError, changed(window=5)),
    ("window", TypeError, changed(window="5,")),
    ("window", ValueError, changed(window=(5,))),
    ("window", ValueError, changed(window=(1, 2, 3))),
    ("window", TypeError, changed(window=(1.5, 2))),
    ("window", ValueError, changed(window=(-2, 0))),
    ("window", ValueError, changed(window=(0, -7))),
    ("window", ValueError, changed(window=(2**63, 0))),
    ("scale", TypeError, changed(scale="1")),
    ("scale", ValueError, changed(scale=float("nan"))),
    ("scale", ValueError, changed(scale=float("inf"))),
    ("softcap", ValueError, changed(softcap=-1.0)),
    ("softcap", TypeError, changed(softcap=[1.0])),
    ("dropout", ValueError, changed(dropout=1.0)),
    ("dropout", ValueError, changed(dropout=-0.1)),
    ("dropout", ValueError, changed(dropout=float("nan"))),
    ("dropout", TypeError, changed(dropout=1j)),
    ("dropout_seed", ValueError, changed(dropout=0.1, dropout_seed=-1)),
    ("dropout_seed", ValueError, changed(dropout=0.1, dropout_seed=2**64)),
    ("dropout_seed", TypeError, changed(dropout=0.1, dropout_seed=0.5)),
    ("implementation", ValueError, changed(implementation="flush")),
    ("implementation", ValueError, changed(implementation="cuda:flash")),
    ("implementation", TypeError, changed(implementation=1)),
    ("threads", ValueError, changed(threads=-1)),
    ("threads", ValueError, changed(threads=2**40)),
    ("threads", TypeError, changed(threads="all")),
    ("deterministic", TypeError, changed(deterministic=0)),
    ("return_lse", TypeError, changed(return_lse="no")),
]


@pytest.mark.parametrize(
    ("name", "error", "arguments"),
    BAD,
    ids=[f"{number}-{name}" for number, (name, _, _) in enumerate(BAD)],
)
def test_names_the_argument(name, error, arguments):
    with pytest.raises(error, match=rf"^{name}\b"):
        strobe.attention(**arguments)


def test_these_are_right():
    strobe.attention(**changed())
    strobe.attention(**packed())
    assert len(BAD) >= 60


GRADIENTS = {"q": Q, "k": K, "v": K, "dout": Q, "out": Q, "lse": zeros(2, 4, 5)}


@pytest.mark.parametrize(
    ("name", "error", "value"),
    [
        ("dout", ValueError, zeros(2, 5, 4, 9)),
        ("dout", TypeError, Q.astype(np.float16)),
        ("dout", TypeError, None),
        ("dout", ValueError, OnDevice(Q)),
        ("out", ValueError, zeros(2, 5, 2, 8)),
        ("out", TypeError, 1.0),
        ("lse", ValueError, zeros(2, 5, 4)),
        ("lse", TypeError, zeros(2, 4, 5, dtype=np.float64)),
        ("lse", TypeError, None),
    ],
)
def test_names_the_argument_of_gradients(name, error, value):
    strobe.attention_backward(**GRADIENTS)
    with pytest.raises(error, match=rf"^{name}\b"):
        strobe.attention_backward(**{**GRADIENTS, name: value})


def test_unknown_arguments_are_named():
    with pytest.raises(TypeError, match="casual"):
        strobe.attention(Q, K, K, casual=True)
    with pytest.raises(TypeError, match="casual"):
        strobe.attention_backward(**GRADIENTS, casual=True)


def test_says_what_an_implementation_cannot_do():
    with pytest.raises(NotImplementedError, match="gemm"):
        strobe.attention_backward(**GRADIENTS, implementation="gemm", bias=zeros(1, 1, 1, 7))
