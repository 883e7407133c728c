"""Attention by PyTorch's matrix products and autograd, and ours held against it."""

import torch

import reference
import strobe

STAY_FP32 = ("sinks", "alibi_slopes")


def dtype_of(name, dtype):
    """That of an argument, if q's is `dtype`."""
    return torch.float32 if name in STAY_FP32 else dtype


def attention(
    q,
    k,
    v,
    *,
    causal=False,
    window=None,
    scale=None,
    softcap=0.0,
    bias=None,
    sinks=None,
    alibi_slopes=None,
):
    """In whatever dtype the arguments have."""
    q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = (tensor.repeat_interleave(group, 1) for tensor in (k, v))
    logits = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    rows, keys = logits.shape[-2:]
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    if bias is not None:
        logits = logits + bias
    positions = torch.arange(max(rows, keys), device=q.device)
    distance = positions[:rows, None] + keys - rows - positions[:keys]
    if alibi_slopes is not None:
        logits = logits - (alibi_slopes[:, None, None] * distance.abs()).to(logits.dtype)
    hidden = reference.hidden(distance, causal, window)
    sees_nothing = hidden.all(-1, keepdim=True)
    logits = logits.masked_fill(hidden, float("-inf")).masked_fill(sees_nothing, 0)
    if sinks is not None:
        column = sinks.to(logits.dtype)[:, None, None].expand(len(q), -1, rows, 1)
        logits = torch.cat([logits, column], -1)
    weights = logits.softmax(-1)[..., :keys].masked_fill(sees_nothing, 0)
    return (weights @ v).transpose(1, 2)


def assert_autograd_agrees(inputs, dout, options):
    """The output and all gradients that autograd gives, by the rule. The inputs may have any
    strides, which what autograd differentiates keeps."""

    def results(compute, wider=None):
        leaves = {
            name: tensor.detach().to(wider or tensor.dtype).requires_grad_(name != "alibi_slopes")
            for name, tensor in inputs.items()
        }
        out = compute(**leaves, **options)
        gradients = torch.autograd.grad(
            out, [leaf for leaf in leaves.values() if leaf.requires_grad], dout.to(out.dtype)
        )
        names = ["out", *(name for name, leaf in leaves.items() if leaf.requires_grad)]
        found = zip(names, (out.detach(), *gradients))
        return {name: tensor.double().cpu().numpy() for name, tensor in found}

    truth, unfused = results(attention, torch.float64), results(attention)
    for name, result in results(strobe.attention).items():
        of_result = dtype_of(name, dout.dtype)
        reference.assert_by_the_rule(
            result,
            truth[name],
            unfused[name],
            factor=2 if name == "out" else 3,
            rounded=lambda x, to=of_result: torch.from_numpy(x).to(to).double().numpy(),
            epsilon=torch.finfo(of_result).eps,
        )
