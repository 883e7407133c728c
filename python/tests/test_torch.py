"""PyTorch: autograd, torch.compile, and gradients held against those of float64."""

import numpy as np
import pytest

import strobe

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch_reference  # noqa: E402, which needs PyTorch

CASES = {
    "plain": {},
    "causal": {"causal": True},
    "softcap": {"softcap": 3.0},
    "bias": {"bias": (2, 4, 33, 41)},
    "broadcast bias": {"bias": (1, 4, 1, 41)},
    "sinks": {"sinks": (4,), "causal": True},
    "slopes": {"alibi_slopes": (4,)},
}


DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_gradients_agree_with_float64(case, dtype, device):
    torch.manual_seed(1)
    shapes = {"q": (2, 33, 4, 16), "k": (2, 41, 2, 16), "v": (2, 41, 2, 8)}
    shapes.update((name, shape) for name, shape in case.items() if isinstance(shape, tuple))
    options = {name: value for name, value in case.items() if name not in shapes}
    inputs = {
        name: torch.randn(shape, device=device).to(torch_reference.dtype_of(name, dtype))
        for name, shape in shapes.items()
    }
    dout = torch.randn(2, 33, 4, 8, device=device).to(dtype)

    torch_reference.assert_autograd_agrees(inputs, dout, options)


def test_results_are_as_they_should_be():
    q = torch.randn(2, 33, 4, 16, dtype=torch.bfloat16, requires_grad=True)
    out, lse = strobe.attention(q, q, q, return_lse=True)
    assert (out.dtype, out.requires_grad) == (torch.bfloat16, True)
    assert (lse.dtype, lse.requires_grad) == (torch.float32, False)


def arguments(**changes):
    torch.manual_seed(2)
    given = {
        "q": torch.randn(2, 9, 4, 8, requires_grad=True),
        "k": torch.randn(2, 11, 2, 8, requires_grad=True),
        "v": torch.randn(2, 11, 2, 8, requires_grad=True),
        "bias": None,
        "sinks": None,
        "alibi_slopes": None,
        "cu_seqlens_q": None,
        "cu_seqlens_k": None,
        "causal": True,
        "window": None,
        "scale": None,
        "softcap": 0.0,
        "dropout": 0.0,
        "dropout_seed": 0,
        "max_seqlen_q": None,
        "max_seqlen_k": None,
        "implementation": None,
        "threads": 0,
        "deterministic": False,
        "tf32": False,
    }
    return tuple({**given, **changes}.values())


OPERATOR_CASES = {
    "dense": {},
    "features": {
        "bias": torch.randn(1, 4, 9, 11, requires_grad=True),
        "sinks": torch.randn(4, requires_grad=True),
        "window": [3, -1],
        "dropout": 0.2,
        "dropout_seed": 7,
    },
    "packed": {
        "q": torch.randn(18, 4, 8, requires_grad=True),
        "k": torch.randn(20, 2, 8, requires_grad=True),
        "v": torch.randn(20, 2, 8, requires_grad=True),
        "cu_seqlens_q": torch.tensor([0, 4, 18], dtype=torch.int32),
        "cu_seqlens_k": torch.tensor([0, 9, 20], dtype=torch.int32),
        "max_seqlen_q": 14,
        "max_seqlen_k": 11,
    },
}


@pytest.mark.parametrize("case", OPERATOR_CASES.values(), ids=OPERATOR_CASES)
def test_operators_are_what_they_say(case):
    import strobe.torch  # noqa: F401

    torch.library.opcheck(torch.ops.strobe.forward.default, arguments(**case))


def test_compiles_whole():
    def model(q, k):
        return strobe.attention(q * 2, k, k, causal=True, window=(5, None)).sin()

    q = torch.randn(2, 9, 4, 8, requires_grad=True)
    k = torch.randn(2, 11, 2, 8, requires_grad=True)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for rows in (11, 8, 5):
        expected = torch.autograd.grad(model(q, k[:, :rows]).sum(), (q, k))
        results = torch.autograd.grad(compiled(q, k[:, :rows]).sum(), (q, k))
        for result, truth in zip(results, expected):
            torch.testing.assert_close(result, truth)


def test_takes_views_parameters_and_other_libraries_arrays():
    qkv = torch.randn(2, 9, 3, 4, 8)
    q, k, v = qkv.unbind(2)
    expected = strobe.attention(*(tensor.contiguous() for tensor in (q, k, v)))
    assert torch.equal(strobe.attention(q, k, v), expected)
    assert torch.equal(strobe.attention(q, k.numpy(), v), expected)
    parameter = torch.nn.Parameter(q)
    assert torch.equal(strobe.attention(parameter, k, v), expected)
    with torch.no_grad():
        assert torch.equal(strobe.attention(parameter, k, v), expected)
    np.testing.assert_array_equal(strobe.attention(q.numpy(), k, v), expected.numpy())


def test_gradients_of_a_sum_and_of_some_inputs():
    q, k = torch.randn(1, 5, 2, 8), torch.randn(1, 5, 2, 8, requires_grad=True)
    strobe.attention(q, k, k).sum().backward()  # whose gradient has strides of 0
    assert q.grad is None and torch.isfinite(k.grad).all()


def test_second_gradients_are_refused():
    q = torch.randn(1, 5, 2, 8, requires_grad=True)
    (first,) = torch.autograd.grad(strobe.attention(q, q, q).exp().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_tensors_without_memory_have_shapes():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        q, v = torch.empty(2, 9, 4, 8), torch.empty(2, 9, 4, 16)
        out, lse = strobe.attention(q, q, v, return_lse=True)
    assert (out.shape, lse.shape) == ((2, 9, 4, 16), (2, 4, 9))


def test_transforms_are_refused_and_nothing_crashes():
    q = torch.randn(3, 1, 5, 2, 8)
    with pytest.raises((RuntimeError, TypeError, NotImplementedError)):
        torch.vmap(lambda q: strobe.attention(q, q, q))(q)
    with pytest.raises((RuntimeError, TypeError, NotImplementedError)):
        torch.func.grad(lambda q: strobe.attention(q, q, q).sum())(q[0])


def test_uint16_is_no_bfloat16():
    q = torch.zeros(1, 5, 2, 8, dtype=torch.uint16)
    with pytest.raises(TypeError, match=r"^q is of uint16"):
        strobe.attention(q, q, q)
    with pytest.raises(TypeError, match=r"^k is of uint16"):
        strobe.attention(q.to(torch.bfloat16), torch.nn.Parameter(q, requires_grad=False), q)


BAD = {
    "q": (TypeError, {"q": torch.zeros(2, 9, 4, 8, dtype=torch.float64)}),
    "k": (ValueError, {"k": torch.zeros(2, 11, 2, 16)[..., ::2]}),
    "v": (TypeError, {"v": torch.zeros(2, 11, 2, 8).to_sparse()}),
    "causal": (TypeError, {"causal": "yes"}),
    "dropout": (ValueError, {"dropout": 2.0}),
    "bias": (ValueError, {"bias": torch.zeros(11)}),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(("name", "error", "changes"), [(n, *rest) for n, rest in BAD.items()])
def test_names_what_is_wrong(name, error, changes, recorded):
    right = {"q": torch.zeros(2, 9, 4, 8), "k": torch.zeros(2, 11, 2, 8)}
    given = {**right, "v": torch.zeros(2, 11, 2, 8, requires_grad=recorded), **changes}
    if recorded and name == "v":
        given["k"] = given["k"].requires_grad_()
    with pytest.raises(error, match=rf"^{name}\b"):
        strobe.attention(**given)


on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU")


@on_a_gpu
def test_computes_on_the_current_stream():
    q = torch.zeros(2, 4096, 8, 64, device="cuda", dtype=torch.bfloat16)
    strobe.attention(q, q, q)  # compiles the kernel
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10**8)
        v = torch.ones_like(q)
        out = strobe.attention(q, q, v)
    stream.synchronize()
    assert torch.equal(out, torch.ones_like(q))


@on_a_gpu
def test_can_be_part_of_a_graph():
    q, k, v = (torch.randn(2, 256, 8, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    strobe.attention(q, k, v)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = strobe.attention(q, k, v)
    q.normal_()
    graph.replay()
    assert torch.equal(out, strobe.attention(q, k, v))


@on_a_gpu
def test_names_what_is_on_another_device():
    q = torch.zeros(1, 5, 2, 8)
    with pytest.raises(ValueError, match=r"^k is on cuda:0"):
        strobe.attention(q, q.cuda(), q)
    with pytest.raises(ValueError, match=r"^v is on cpu"):
        strobe.attention(q.cuda(), q.cuda(), q)
