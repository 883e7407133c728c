"""flash_attn's functions: their arguments, what they compute, and that a model finds them."""

import inspect
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import strobe  # noqa: E402
from strobe.compat import flash_attn  # noqa: E402
from strobe.compat.flash_attn.bert_padding import pad_input, unpad_input  # noqa: E402

OPTIONS = (
    "dropout_p=0.0 softmax_scale=None causal=False window_size=(-1,-1) softcap=0.0 "
    "alibi_slopes=None deterministic=False return_attn_probs=False"
)
LENGTHS = "cu_seqlens_q cu_seqlens_k max_seqlen_q max_seqlen_k"
SIGNATURES = {
    "flash_attn_func": f"q k v {OPTIONS}",
    "flash_attn_kvpacked_func": f"q kv {OPTIONS}",
    "flash_attn_qkvpacked_func": f"qkv {OPTIONS}",
    "flash_attn_varlen_func": f"q k v {LENGTHS} {OPTIONS} block_table=None",
    "flash_attn_varlen_kvpacked_func": f"q kv {LENGTHS} {OPTIONS}",
    "flash_attn_varlen_qkvpacked_func": f"qkv cu_seqlens max_seqlen {OPTIONS}",
    "flash_attn_with_kvcache": "q k_cache v_cache k=None v=None rotary_cos=None rotary_sin=None "
    "cache_seqlens=None cache_batch_idx=None cache_leftpad=None block_table=None "
    "softmax_scale=None causal=False window_size=(-1,-1) softcap=0.0 rotary_interleaved=True "
    "alibi_slopes=None num_splits=0 return_softmax_lse=False",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_has_the_arguments(name):
    parameters = inspect.signature(getattr(flash_attn, name)).parameters.values()
    written = (
        parameter.name
        if parameter.default is parameter.empty
        else f"{parameter.name}={parameter.default}".replace(" ", "")
        for parameter in parameters
    )
    assert " ".join(written) == SIGNATURES[name]


OFFSETS = torch.tensor([0, 4, 4, 18], dtype=torch.int32)


def test_packed_is_as_separate():
    qkv = torch.randn(2, 9, 3, 4, 8)
    q, k, v = qkv.unbind(2)
    expected = strobe.attention(q, k, v, causal=True, window=(3, 0), scale=0.2)
    options = {"causal": True, "window_size": (3, 0), "softmax_scale": 0.2}
    assert torch.equal(flash_attn.flash_attn_func(q, k, v, **options), expected)
    assert torch.equal(flash_attn.flash_attn_kvpacked_func(q, qkv[:, :, 1:], **options), expected)
    assert torch.equal(flash_attn.flash_attn_qkvpacked_func(qkv, **options), expected)
    positional = flash_attn.flash_attn_func(q, k, v, 0.0, 0.2, True, (3, 0))
    assert torch.equal(positional, expected)


def test_packed_is_as_separate_with_different_lengths():
    qkv = torch.randn(18, 3, 4, 8)
    q, k, v = qkv.unbind(1)
    expected, lse = strobe.attention(
        q, k, v, causal=True, cu_seqlens_q=OFFSETS, max_seqlen_q=14, return_lse=True
    )
    lengths = (OFFSETS, OFFSETS, 14, 14)
    out, softmax_lse, probabilities = flash_attn.flash_attn_varlen_func(
        q, k, v, *lengths, causal=True, return_attn_probs=True
    )
    assert torch.equal(out, expected) and torch.equal(softmax_lse, lse) and probabilities is None
    assert softmax_lse.shape == (4, 18)
    out = flash_attn.flash_attn_varlen_kvpacked_func(q, qkv[:, 1:], *lengths, causal=True)
    assert torch.equal(out, expected)
    out = flash_attn.flash_attn_varlen_qkvpacked_func(qkv, OFFSETS, 14, causal=True)
    assert torch.equal(out, expected)


def test_gradients_reach_the_packed_tensor():
    qkv = torch.randn(2, 9, 3, 4, 8, requires_grad=True)
    flash_attn.flash_attn_qkvpacked_func(qkv, causal=True).square().sum().backward()
    q, k, v = (part.detach().requires_grad_() for part in qkv.unbind(2))
    flash_attn.flash_attn_func(q, k, v, causal=True).square().sum().backward()
    assert torch.equal(qkv.grad, torch.stack([q.grad, k.grad, v.grad], 2))


def test_dropout_is_of_the_generator():
    q = torch.randn(2, 64, 2, 8)

    def dropped(seed):
        torch.manual_seed(seed)
        return flash_attn.flash_attn_func(q, q, q, dropout_p=0.4)

    assert torch.equal(dropped(1), dropped(1))
    assert not torch.equal(dropped(1), dropped(2))


def test_copies_where_the_last_axis_is_not_contiguous():
    q = torch.randn(2, 9, 8, 4).mT
    out = flash_attn.flash_attn_func(q, q, q)
    assert torch.equal(out, strobe.attention(*[q.contiguous()] * 3))


def test_padding_there_and_back():
    mask = torch.tensor([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
    padded = torch.randn(3, 4, 2, 8, requires_grad=True)
    rows, indices, offsets, longest, lengths = unpad_input(padded, mask)
    assert (offsets.tolist(), longest, lengths.tolist()) == ([0, 2, 2, 6], 4, [2, 0, 4])
    assert offsets.dtype == torch.int32
    out = flash_attn.flash_attn_varlen_func(rows, rows, rows, offsets, offsets, longest, longest)
    back = pad_input(out, indices, 3, 4)
    back.sum().backward()
    assert back.shape == padded.shape and not back[mask == 0].any()
    assert padded.grad[mask == 1].any() and not padded.grad[mask == 0].any()


def test_says_what_is_not_there_yet():
    q = torch.zeros(1, 1, 1, 8)
    with pytest.raises(NotImplementedError, match="flash_attn_with_kvcache"):
        flash_attn.flash_attn_with_kvcache(q, q, q)
    with pytest.raises(NotImplementedError, match="block_table"):
        flash_attn.flash_attn_varlen_func(q, q, q, OFFSETS, OFFSETS, 1, 1, block_table=OFFSETS)


def test_wrong_packing_is_named():
    with pytest.raises(ValueError, match=r"^qkv"):
        flash_attn.flash_attn_qkvpacked_func(torch.zeros(2, 9, 2, 4, 8))
    with pytest.raises(ValueError, match=r"^kv"):
        flash_attn.flash_attn_kvpacked_func(torch.zeros(2, 9, 4, 8), torch.zeros(4, 8))


def test_stands_in_for_flash_attn():
    program = """
import sys
import strobe.compat.flash_attn
sys.modules["flash_attn"] = strobe.compat.flash_attn

import torch
from flash_attn import flash_attn_func, flash_attn_varlen_func
from flash_attn.bert_padding import index_first_axis, pad_input, unpad_input
from flash_attn.flash_attn_interface import flash_attn_kvpacked_func
import flash_attn
q = torch.randn(1, 5, 2, 8)
assert flash_attn.__version__.startswith("2.")
assert torch.equal(flash_attn_func(q, q, q), flash_attn_kvpacked_func(q, torch.stack([q, q], 2)))
"""
    subprocess.run([sys.executable, "-c", program], check=True)
