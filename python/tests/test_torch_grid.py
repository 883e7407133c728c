"""PyTorch's autograd with our attention, over a sample of all axes: head dims, lengths, dtypes,
heads that share keys, masks, features, and how tensors lie. On the CPU fewer, and shorter ones."""

import random

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch_reference  # noqa: E402, which needs PyTorch

DIMS = [(d, d) for d in (8, 16, 21, 32, 40, 59, 64, 72, 80, 96, 111)]
DIMS += [(d, d) for d in (128, 129, 136, 160, 192, 203, 224, 256)]
DIMS += [(192, 128), (64, 256), (128, 64)]
LENGTHS = [(1, 1), (1, 3), (2, 1), (1, 147), (239, 1), (3, 799), (799, 3), (113, 203), (113, 211)]
LENGTHS += [(128, 217), (108, 256), (307, 256), (640, 128), (127, 512), (127, 513), (256, 512)]
LENGTHS += [(512, 256), (1023, 1024), (1024, 1023), (2048, 2048)]
HEADS = [(1, 1), (2, 1), (3, 1), (4, 2), (5, 1), (6, 2), (7, 1), (8, 1), (16, 1), (2, 2)]
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
MASKS = [{}, {"causal": True}, {"window": (7, 0)}, {"window": (None, 1)}, {"window": (64, 64)}]
FEATURES = ["", "softcap", "alibi_slopes", "sinks", "scale", "negative scale"]
FEATURES += ["bias", "row of bias"]
LAYOUTS = ["contiguous", "heads first", "sliced"]
BATCH = 2
MOST_ON_CPU = 1 << 25  # multiplications
# In float32 a query's error is mostly that of its LSE, which all its elements share: the mean over
# a few queries is chance.
FEW_QUERIES = 64


class Deck:
    """Deals in random order, each card once before any comes again."""

    def __init__(self, cards, seed):
        self.cards, self.random, self.pile = cards, random.Random(seed), []

    def deal(self, fits=lambda card: True):
        for _ in range(2 * len(self.cards)):
            if not self.pile:
                self.pile = self.random.sample(self.cards, len(self.cards))
            card = self.pile.pop()
            if fits(card):
                return card
        return self.cards[0]


def deal_cases(device, count):
    axes = (DIMS, LENGTHS, HEADS, DTYPES, MASKS, FEATURES, LAYOUTS)
    dims, lengths, heads, dtypes, masks, features, layouts = map(Deck, axes, range(len(axes)))
    for _ in range(count):
        dim, shared, dtype = dims.deal(), heads.deal(), dtypes.deal()

        def fits(pair, dim=dim, heads=shared[0], dtype=dtype):
            few = dtype == torch.float32 and BATCH * pair[0] * heads < FEW_QUERIES
            work = pair[0] * pair[1] * heads * sum(dim)
            return not few and (device != "cpu" or work <= MOST_ON_CPU)

        case = (dim, lengths.deal(fits), shared, dtype, masks.deal(), features.deal())
        yield (device, *case, layouts.deal())


CASES = list(deal_cases("cpu", 44))
if torch.cuda.is_available():
    CASES += deal_cases("cuda", 66)


def name_of(case):
    device, dim, lengths, heads, dtype, mask, feature, layout = case
    parts = [device, *(f"{a}x{b}" for a, b in (dim, lengths, heads)), str(dtype)[6:]]
    return " ".join([*parts, *(f"{k}={v}" for k, v in mask.items()), feature, layout])


def tensor_of(layout, shape, device, dtype):
    """[batch, length, heads, dim], the last contiguous."""
    batch, length, heads, dim = shape
    if layout == "heads first":
        return torch.randn(batch, heads, length, dim, device=device).to(dtype).transpose(1, 2)
    if layout == "sliced":
        return torch.randn(batch, length, heads, dim + 3, device=device).to(dtype)[..., 1:-2]
    return torch.randn(shape, device=device).to(dtype)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_autograd_agrees_with_float64(case):
    device, (dim, dim_v), (rows, keys), (heads, heads_k), dtype, mask, feature, layout = case
    torch.manual_seed(3)
    shapes = {
        "q": (BATCH, rows, heads, dim),
        "k": (BATCH, keys, heads_k, dim),
        "v": (BATCH, keys, heads_k, dim_v),
    }
    inputs = {name: tensor_of(layout, shape, device, dtype) for name, shape in shapes.items()}
    options = dict(mask)
    if feature in torch_reference.STAY_FP32:
        inputs[feature] = torch.rand(heads, device=device)
    elif feature == "softcap":
        options["softcap"] = 15.0
        inputs["q"] = inputs["q"] * 5
    elif feature.endswith("scale"):
        options["scale"] = 1 / dim if feature == "scale" else -0.1
    elif feature:
        bias_rows = 1 if feature == "row of bias" else rows
        inputs["bias"] = torch.randn(1, heads, bias_rows, keys, device=device).to(dtype)
    dout = torch.randn(BATCH, rows, heads, dim_v, device=device).to(dtype)
    torch_reference.assert_autograd_agrees(inputs, dout, options)
