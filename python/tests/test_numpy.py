"""Attention over NumPy's arrays: every option arrives, and any strides will do."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import reference
import strobe

OPTIONS = {
    "plain": {},
    "causal": {"causal": True},
    "window": {"window": (5, 3)},
    "window to the left": {"window": (7, None)},
    "causal window": {"causal": True, "window": (4, -1)},
    "scale": {"scale": 0.25},
    "negative scale": {"scale": -0.1},
    "softcap": {"softcap": 2.5},
    "sinks": {"sinks": np.linspace(-1, 2, 4, dtype=np.float32)},
    "slopes": {"alibi_slopes": np.array([0.5, 0.25, 0.125, 0.0625], np.float32)},
    "slopes of a batch": {"alibi_slopes": np.full((2, 4), 0.3, np.float32)},
    "bias": {"bias": np.sin(np.arange(2 * 4 * 37 * 41, dtype=np.float32)).reshape(2, 4, 37, 41)},
    "broadcast bias": {"bias": np.cos(np.arange(41, dtype=np.float32)).reshape(1, 1, 1, 41)},
    "threads": {"threads": 1},
}


def operands(draw):
    return draw(2, 37, 4, 32), draw(2, 41, 2, 32), draw(2, 41, 2, 24)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_agrees_with_float64(draw, options):
    q, k, v = operands(draw)
    out, lse = strobe.attention(q, k, v, return_lse=True, **options)
    of_interest = {name: value for name, value in options.items() if name != "threads"}
    truth, truth_lse = reference.attention(q, k, v, **of_interest)
    unfused = strobe.attention(q, k, v, implementation="standard", **options)
    assert (type(out), out.dtype, out.shape) == (np.ndarray, np.float32, (2, 37, 4, 24))
    reference.assert_by_the_rule(out, truth, unfused)
    np.testing.assert_allclose(lse, truth_lse, rtol=1e-5, atol=1e-5)


def test_rows_that_see_nothing_are_zero(draw):
    out, lse = strobe.attention(
        draw(1, 5, 2, 8), draw(1, 2, 2, 8), draw(1, 2, 2, 8), causal=True, return_lse=True
    )
    assert not out[:, :3].any() and out[:, 3:].all()
    assert np.isneginf(lse[..., :3]).all() and np.isfinite(lse[..., 3:]).all()


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_gradients_agree_with_the_oracle(draw, options):
    q, k, v = operands(draw)
    dout = draw(2, 37, 4, 24)
    out, lse = strobe.attention(q, k, v, return_lse=True, **options)

    def gradients(implementation):
        return strobe.attention_backward(
            dout, q, k, v, out, lse, **options, implementation=implementation
        )

    ours, oracle, unfused = gradients(None), gradients("oracle"), gradients("standard")
    for name, mine, truth, baseline in zip(ours._fields, ours, oracle, unfused):
        assert (mine is None) == (name in ("bias", "sinks") and name not in options)
        if mine is not None:
            assert mine.shape == truth.shape
            reference.assert_by_the_rule(mine, truth, baseline, factor=3)


def test_float16_and_bfloat16(draw):
    q, k, v = operands(draw)
    exact = strobe.attention(q, k, v)
    half = strobe.attention(*(array.astype(np.float16) for array in (q, k, v)))
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, exact, atol=4e-3)
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    out, lse = strobe.attention(*(array.astype(bfloat16) for array in (q, k, v)), return_lse=True)
    assert (out.dtype, lse.dtype) == (bfloat16, np.float32)
    np.testing.assert_allclose(out.astype(np.float32), exact, atol=3e-2)


LAYOUTS = {
    "heads before rows": lambda a: a.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3),
    "part of a packed array": lambda a: np.stack([a, a, a], axis=2)[:, :, 1],
    "misaligned": lambda a: np.concatenate([a[..., :1], a], axis=-1)[..., 1:],
    "backwards": lambda a: a[:, ::-1].copy()[:, ::-1],
    "read only": lambda a: (a.setflags(write=False), a)[1],
    "memoryview": memoryview,
    "Fortran's order but for the last axis": lambda a: np.moveaxis(
        np.moveaxis(a, 0, 2).copy(), 2, 0
    ),
}


@pytest.mark.parametrize("arrange", LAYOUTS.values(), ids=LAYOUTS)
def test_takes_any_layout(draw, arrange):
    q, k, v = operands(draw)
    expected = strobe.attention(q, k, v, causal=True)
    out = strobe.attention(arrange(q), arrange(k), arrange(v), causal=True)
    np.testing.assert_array_equal(out, expected)


def test_takes_expanded_arrays(draw):
    q, k, v = draw(2, 9, 4, 8), draw(1, 11, 4, 8), draw(1, 11, 4, 8)
    out = strobe.attention(q, np.broadcast_to(k, (2, 11, 4, 8)), np.broadcast_to(v, (2, 11, 4, 8)))
    np.testing.assert_array_equal(out, strobe.attention(q, k.repeat(2, 0), v.repeat(2, 0)))


@pytest.mark.parametrize(
    "shapes",
    [
        ((0, 5, 2, 8), (0, 7, 2, 8)),
        ((2, 0, 2, 8), (2, 7, 2, 8)),
        ((2, 5, 2, 8), (2, 0, 2, 8)),
        ((2, 0, 2, 8), (2, 0, 2, 8)),
    ],
)
def test_nothing_is_legal(draw, shapes):
    q, k = (draw(*shape) for shape in shapes)
    out, lse = strobe.attention(q, k, k, return_lse=True)
    assert out.shape == q.shape and not out.any()
    grads = strobe.attention_backward(out, q, k, k, out, lse)
    assert grads.q.shape == q.shape and not grads.q.any() and not grads.k.any()


def test_sequences_of_different_lengths(draw):
    lengths_q, lengths_k = [5, 0, 17, 3], [9, 4, 0, 3]
    offsets_q, offsets_k = (
        np.cumsum([0, *lengths], dtype=np.int32) for lengths in (lengths_q, lengths_k)
    )
    q, k, v = draw(25, 4, 16), draw(16, 2, 16), draw(16, 2, 16)
    out, lse = strobe.attention(
        q,
        k,
        v,
        causal=True,
        cu_seqlens_q=offsets_q,
        cu_seqlens_k=offsets_k,
        return_lse=True,
    )
    assert lse.shape == (4, 25)
    for i in range(4):
        rows = slice(offsets_q[i], offsets_q[i + 1])
        keys = slice(offsets_k[i], offsets_k[i + 1])
        alone, alone_lse = strobe.attention(
            q[None, rows], k[None, keys], v[None, keys], causal=True, return_lse=True
        )
        np.testing.assert_allclose(out[rows], alone[0], atol=1e-6)
        np.testing.assert_allclose(lse[:, rows], alone_lse[0], rtol=1e-6)
    grads = strobe.attention_backward(
        out, q, k, v, out, lse, causal=True, cu_seqlens_q=offsets_q, cu_seqlens_k=offsets_k
    )
    assert np.isfinite(grads.q).all() and not grads.q[5:22].any()  # no keys there


def test_rows_past_the_last_offset_are_nobodys(draw):
    q = draw(20, 2, 8)
    offsets = np.array([0, 4, 9], np.int32)
    out = strobe.attention(q, q, q, cu_seqlens_q=offsets)
    np.testing.assert_array_equal(
        out[:9], strobe.attention(q[:9], q[:9], q[:9], cu_seqlens_q=offsets)
    )


def test_dropout_is_the_seeds(draw):
    q, k, v = operands(draw)

    def dropped(seed):
        return strobe.attention(q, k, v, dropout=0.3, dropout_seed=seed)

    np.testing.assert_array_equal(dropped(2**64 - 1), dropped(2**64 - 1))
    assert np.abs(dropped(1) - dropped(2)).max() > 0.01


def test_many_threads_at_once(draw):
    cases = [(draw(1, rows, 2, 16), draw(1, rows + 3, 2, 16)) for rows in (1, 30, 65, 200)]
    expected = [strobe.attention(q, k, k) for q, k in cases]
    wrong = []

    def work():
        for turn in range(50):
            (q, k), truth = cases[turn % 4], expected[turn % 4]
            if not np.array_equal(strobe.attention(q, k, k), truth):
                wrong.append(turn)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_more_problems_than_plans_are_kept(draw):
    for _ in range(2):
        for rows in range(1, 90):
            q = draw(1, rows, 1, 8)
            assert strobe.attention(q, q, q).shape == q.shape
    strobe.clear_cache()
    assert strobe.attention(q, q, q).shape == q.shape


def test_imports_no_other_library():
    program = (
        "import sys, strobe; print(sorted({'torch', 'numpy', 'jax', 'cupy'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"
