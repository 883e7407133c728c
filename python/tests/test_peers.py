"""The peers by PyTorch, and by libraries that stand-ins take the place of."""

import importlib
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import strobe

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("strobe._laboratory", reason="built without the laboratory")

from strobe import peers  # noqa: E402

ON_CPU = SimpleNamespace(device="cpu", stream=0, threads=1, deterministic=True, tf32=False)


@pytest.mark.parametrize("name", ["torch:math", "torch:flash"])
@pytest.mark.parametrize(
    "problem", ["b2 sq40 h4 hk2 d16 fp32 causal", "b1 sq40 sk50 h2 d16 bf16 bias:hk"]
)
def test_pytorch_on_the_cpu_keeps_the_rule(name, problem):
    threads = torch.get_num_threads()
    # Where a query sees one key, flash does not give dq the zero that the rule asks for.
    passes = "both" if name == "torch:math" else "forward"
    records = strobe.compare(
        problem, implementations=[name, "flash"], passes=passes, repeats=2, threads=1
    )
    for record in records:
        assert record["status"] == "ok", record["reason"]
        assert record["error"]["rule"] == "pass"
    assert records[0]["plan"]["library"].startswith("torch ")
    assert torch.get_num_threads() == threads
    assert torch.backends.cuda.math_sdp_enabled() and torch.backends.cuda.flash_sdp_enabled()


@pytest.mark.parametrize(
    ("problem", "lacks"),
    [
        ("s40 d16 fp32 w3:4", "windows"),
        ("s40 d16 fp32 cap15", "softcap"),
        ("s40 d16 fp32 alibi", "ALiBi"),
        ("s40 d16 fp32 drop0.1", "dropout"),
        ("sq40 sk50 d16 fp32 causal", "bottom right"),
        ("s40 d16 fp32 causal bias:bhqk", "together with a causal mask"),
        ("lq20,20 d16 fp32", "variable lengths"),
    ],
)
def test_what_pytorch_lacks_is_a_phrase(problem, lacks):
    (record,) = strobe.compare(problem, implementations="torch:math", repeats=2)
    assert record["status"] == "unsupported" and lacks in record["reason"]


def test_what_pytorch_refuses_comes_with_its_reasons():
    peer = peers.found()["torch:flash"]
    q, v = torch.randn(1, 8, 1, 16), torch.randn(1, 8, 1, 32)
    with pytest.raises(NotImplementedError, match="same last dimension"):
        peer.prepare(peers.Problem("s8 d16 dv32 fp32"), {"q": q, "k": q, "v": v}, ON_CPU)


def test_a_result_of_another_shape_is_refused():
    from strobe.peers._torch import Forward, stream_of

    tensors = {name: torch.zeros(1, 8, 1, 16) for name in ("q", "k", "v", "out")}
    run = Forward(lambda q, k, v: q[:, :1] + 0, tensors, stream_of(ON_CPU))
    run()
    with pytest.raises(ValueError, match="shape"):
        run.deliver()


def test_delivered_memory_is_not_mistaken_for_a_result():
    from strobe.peers._torch import Forward, stream_of

    tensors = {name: torch.ones(1, 8, 1, 16) for name in ("q", "k", "v", "out")}
    result = torch.full((1, 8, 1, 16), 2.0)
    run = Forward(lambda q, k, v: result, tensors, stream_of(ON_CPU))
    run()
    assert run.deliver() and not run.deliver()
    assert (tensors["out"] == 2).all() and result.isnan().all()
    aliasing = Forward(lambda q, k, v: q, tensors, stream_of(ON_CPU))
    aliasing()
    assert aliasing.deliver() and (tensors["q"] == 1).all()


# Stand-ins: each is called as the library's own function would be, checks the layout that it is
# given, and computes by the oracle.


def oracle(q, k, v, *, heads_first=False, **options):
    if heads_first:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return strobe.attention(
        *(x.contiguous() for x in (q, k, v)), implementation="standard", **options
    )


class Flash2(ModuleType):
    __version__ = "2.8.0"

    def flash_attn_func(
        self, q, k, v, *, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic
    ):
        assert deterministic
        return oracle(q, k, v, scale=softmax_scale, causal=causal, window=window_size,
                      softcap=softcap, alibi_slopes=alibi_slopes)  # fmt: skip

    def flash_attn_varlen_func(
        self, q, k, v, *, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale,
        causal, window_size, softcap, alibi_slopes, deterministic
    ):  # fmt: skip
        return oracle(q, k, v, scale=softmax_scale, causal=causal, window=window_size,
                      softcap=softcap, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k,
                      max_seqlen_q=max_seqlen_q, max_seqlen_k=max_seqlen_k)  # fmt: skip


class Flash3(ModuleType):
    def flash_attn_func(
        self, q, k, v, *, softmax_scale, causal, window_size, softcap, deterministic
    ):
        out = oracle(q, k, v, scale=softmax_scale, causal=causal, window=window_size,
                     softcap=softcap)  # fmt: skip
        return out, None

    def flash_attn_varlen_func(self, q, k, v, *, softmax_scale, window_size, deterministic, **rest):
        return oracle(q, k, v, scale=softmax_scale, window=window_size, **rest)


class Sage(ModuleType):
    def sageattn(self, q, k, v, *, tensor_layout, is_causal, sm_scale):
        return oracle(q, k, v, heads_first=tensor_layout == "HND", causal=is_causal, scale=sm_scale)


class Sparge(ModuleType):
    def spas_sage2_attn_meansim_cuda(self, q, k, v, *, is_causal, scale, tensor_layout):
        return oracle(q, k, v, heads_first=tensor_layout == "HND", causal=is_causal, scale=scale)


class Xformers(ModuleType):
    """With the modules below it."""

    __version__ = "0.0.30"
    __path__ = ()

    class Mask:
        def __init__(self, lengths=(None, None), causal=True):
            self.lengths, self.causal = lengths, causal

        @classmethod
        def from_seqlens(cls, q_seqlen, kv_seqlen):
            return cls((q_seqlen, kv_seqlen), causal=False)

        def make_causal_from_bottomright(self):
            return type(self)(self.lengths)

    @staticmethod
    def memory_efficient_attention(q, k, v, *, attn_bias, scale):
        causal = attn_bias is not None and attn_bias.causal
        if q.ndim == 5:  # [batch, seqlen, groups, heads of a group, dim]
            assert k.stride(3) == v.stride(3) == 0
            return oracle(q.flatten(2, 3), k[..., 0, :], v[..., 0, :], scale=scale, causal=causal)
        if attn_bias is None or attn_bias.lengths[0] is None:
            return oracle(q, k, v, scale=scale, causal=causal)
        offsets = (torch.tensor([0, *lengths]).cumsum(0).int() for lengths in attn_bias.lengths)
        starts_q, starts_k = offsets
        return oracle(q[0], k[0], v[0], scale=scale, causal=causal, cu_seqlens_q=starts_q,
                      cu_seqlens_k=starts_k)[None]  # fmt: skip

    def modules(self):
        ops, fmha = ModuleType("xformers.ops"), ModuleType("xformers.ops.fmha")
        self.ops, ops.fmha, ops.__path__ = ops, fmha, ()
        ops.memory_efficient_attention = self.memory_efficient_attention
        fmha.attn_bias = SimpleNamespace(
            LowerTriangularFromBottomRightMask=self.Mask, BlockDiagonalMask=self.Mask
        )
        return {"xformers": self, "xformers.ops": ops, "xformers.ops.fmha": fmha}


STAND_INS = {
    "flash_attn": Flash2,
    "flash_attn_interface": Flash3,
    "xformers": Xformers,
    "sageattention": Sage,
    "spas_sage_attn": Sparge,
}


@pytest.fixture
def peer_by(monkeypatch):
    """peer_by("xformers"): the peer, with the stand-in for its library."""

    def peer_by(library):
        stand_in = STAND_INS[library](library)
        modules = stand_in.modules() if library == "xformers" else {library: stand_in}
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.delitem(sys.modules, f"strobe.peers.{library}", raising=False)
        module = importlib.import_module(f"strobe.peers.{library}")
        monkeypatch.delitem(sys.modules, f"strobe.peers.{library}")
        (peer,) = module.peers()
        return peer

    return peer_by


@pytest.mark.parametrize(
    ("library", "problem"),
    [
        ("flash_attn", "b2 sq24 sk30 h4 hk2 d16 fp16 causal"),
        ("flash_attn", "b2 s24 h2 d16 fp16 w5:3 cap15 alibi"),
        ("flash_attn", "lq13,24 lk20,30 h2 d16 fp16 causal"),
        ("flash_attn_interface", "b2 sq24 sk30 h4 hk2 d16 fp16 causal cap15"),
        ("flash_attn_interface", "lq13,24 h2 d16 fp16 w5:3"),
        ("xformers", "b2 sq24 sk30 h2 d16 fp16 causal"),
        ("xformers", "b2 s24 h4 hk2 d16 dv8 fp16"),
        ("xformers", "lq13,24 lk20,30 h2 d16 fp16 causal"),
        ("sageattention", "b2 s24 h4 hk2 d16 fp16 causal"),
        ("spas_sage_attn", "b1 s128 h2 d64 fp16 causal"),
    ],
)
@pytest.mark.parametrize("backward", [False, True])
def test_libraries_are_called_by_their_names(
    peer_by, draw, monkeypatch, library, problem, backward
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    peer = peer_by(library)
    text = problem + " bwd" if backward else problem
    problem = peers.Problem(text)
    missing = peer.missing(problem, "cuda")
    if backward and library in ("sageattention", "spas_sage_attn"):
        assert missing == ["a backward pass"]
        return
    assert missing == []
    arrays, options = operands(problem, draw)
    run = peer.prepare(problem, arrays, ON_CPU)
    run()
    assert run.deliver()

    inputs = [arrays[name].clone().requires_grad_(backward) for name in ("q", "k", "v")]
    out = strobe.attention(*inputs, **options)
    if not backward:
        np.testing.assert_allclose(arrays["out"], out, atol=1e-5)
        return
    out.backward(arrays["dout"])
    for name, leaf in zip(("dq", "dk", "dv"), inputs):
        np.testing.assert_allclose(arrays[name], leaf.grad, atol=1e-4)


def operands(problem, draw):
    """Arrays of the problem in float32, which the stand-ins take, and options of attention."""
    rows_q, rows_k = (problem.batch, problem.seqlen_q), (problem.batch, problem.seqlen_k)
    options = {"causal": problem.causal, "window": problem.window, "softcap": problem.softcap}
    arrays = {}
    if problem.varlen:
        rows_q, rows_k = (sum(problem.lengths_q),), (sum(problem.lengths_k),)
        for name in ("q", "k"):
            lengths = getattr(problem, f"lengths_{name}")
            offsets = torch.tensor([0, *lengths]).cumsum(0).int()
            options[f"cu_seqlens_{name}"] = arrays[f"cu_seqlens_{name}"] = offsets
    for name, rows, heads, dim in (
        ("q", rows_q, problem.heads, problem.dim),
        ("k", rows_k, problem.heads_k, problem.dim),
        ("v", rows_k, problem.heads_k, problem.dim_v),
        ("out", rows_q, problem.heads, problem.dim_v),
    ):
        arrays[name] = torch.from_numpy(draw(*rows, heads, dim))
        arrays[f"d{name}"] = torch.from_numpy(draw(*rows, heads, dim))
    if problem.alibi:
        slopes = torch.from_numpy(draw(problem.batch, problem.heads)).abs()
        options["alibi_slopes"] = arrays["alibi_slopes"] = slopes
    return arrays, options


def test_limits_of_libraries_are_named(peer_by, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert peer_by("flash_attn").missing(peers.Problem("s8 d512 bf16"), "cuda") == [
        "head dims above 256"
    ]
    assert peer_by("sageattention").missing(peers.Problem("s8 d64 fp32"), "cuda") == [
        "fp32 (has fp16, bf16)"
    ]
    lacking = peer_by("spas_sage_attn").missing(peers.Problem("s64 d96 bf16"), "cuda")
    assert lacking == ["fewer than 128 queries", "a head dim of 96 (has 64, 128)"]


def test_our_own_flash_attn_is_no_peer(monkeypatch):
    import strobe.compat.flash_attn

    monkeypatch.setitem(sys.modules, "flash_attn", strobe.compat.flash_attn)
    monkeypatch.delitem(sys.modules, "strobe.peers.flash_attn", raising=False)
    module = importlib.import_module("strobe.peers.flash_attn")
    monkeypatch.delitem(sys.modules, "strobe.peers.flash_attn")
    with pytest.raises(ImportError, match=r"strobe\.compat"):
        module.peers()
