#!/usr/bin/env python3
"""Times flash attention on the CPU beside PyTorch's scaled_dot_product_attention, in one process.

Both work on the same tensors with the same number of threads, in turns, so that a machine that
slows down slows both. Prints a table and, with --json, one record a line.

    python3 bench/cpu_against_torch.py --library build/libstrobe.so --threads 2 16
"""

import argparse
import ctypes as C
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

MAX_RANK = 5
DTYPES = {"fp32": (0, torch.float32), "fp16": (1, torch.float16), "bf16": (2, torch.bfloat16)}
# What the two may differ by in a head, as a part of its length as a vector. The rounding of gradients
# that PyTorch sums in 16 bits adds up to some hundredths; a block of keys left out is a fifth.
MOST_DIFFERENCE = {"fp32": 1e-3, "fp16": 0.1, "bf16": 0.1}


class Problem(C.Structure):
    _fields_ = [
        ("struct_size", C.c_size_t),
        ("pass_", C.c_int32),
        ("dtype", C.c_int32),
        ("layout", C.c_int32),
        ("causal", C.c_int32),
        ("batch", C.c_int64),
        ("seqlen_q", C.c_int64),
        ("seqlen_k", C.c_int64),
        ("heads", C.c_int64),
        ("heads_k", C.c_int64),
        ("dim", C.c_int64),
        ("dim_v", C.c_int64),
        ("scale", C.c_double),
        ("window_left", C.c_int64),
        ("window_right", C.c_int64),
        ("softcap", C.c_double),
        ("alibi", C.c_int32),
        ("sinks", C.c_int32),
        ("bias", C.c_int32),
        ("dropout", C.c_double),
        ("dropout_seed", C.c_uint64),
        ("lengths_q", C.c_void_p),
        ("lengths_k", C.c_void_p),
    ]


class Tensor(C.Structure):
    _fields_ = [
        ("data", C.c_void_p),
        ("dtype", C.c_int32),
        ("device", C.c_int32),
        ("device_index", C.c_int32),
        ("rank", C.c_int32),
        ("shape", C.c_int64 * MAX_RANK),
        ("strides", C.c_int64 * MAX_RANK),
    ]


class Tensors(C.Structure):
    _fields_ = [
        (name, Tensor)
        for name in (
            "q",
            "k",
            "v",
            "out",
            "lse",
            "bias",
            "sinks",
            "alibi_slopes",
            "cu_seqlens_q",
            "cu_seqlens_k",
            "dout",
            "dq",
            "dk",
            "dv",
            "dbias",
            "dsinks",
        )
    ]


def view(tensor):
    codes = {torch_type: code for code, torch_type in DTYPES.values()}
    result = Tensor(data=tensor.data_ptr(), dtype=codes[tensor.dtype], rank=tensor.dim())
    for axis in range(tensor.dim()):
        result.shape[axis] = tensor.shape[axis]
        result.strides[axis] = tensor.stride(axis)
    return result


class Strobe:
    """The C interface, as far as this needs it."""

    def __init__(self, path):
        self.library = C.CDLL(path)
        self.library.strobe_last_error.restype = C.c_char_p
        self.library.strobe_plan_description.restype = C.c_char_p
        self.library.strobe_plan_workspace_bytes.restype = C.c_size_t

    def check(self, status):
        if status != 0:
            raise SystemExit("strobe: " + self.library.strobe_last_error().decode())

    def plan(self, setting, backward, threads):
        problem = Problem()
        self.library.strobe_problem_init(C.byref(problem))
        problem.pass_ = int(backward)
        problem.dtype = DTYPES[setting["dtype"]][0]
        problem.causal = int(setting["causal"])
        problem.batch, problem.heads = setting["batch"], setting["heads"]
        problem.seqlen_q, problem.dim = setting["seqlen"], setting["dim"]
        plan = C.c_void_p()
        self.check(
            self.library.strobe_plan_create(C.byref(problem), b"flash", threads, C.byref(plan))
        )
        return plan

    def runner(self, plan, tensors):
        """A function that computes, and the memory it needs kept alive with it."""
        size = self.library.strobe_plan_workspace_bytes(plan)
        memory = torch.empty(size + 64, dtype=torch.uint8)
        aligned = (memory.data_ptr() + 63) // 64 * 64
        call = self.library.strobe_run
        arguments = (plan, C.byref(tensors), C.c_void_p(aligned), C.c_size_t(size), None)

        def run(keep=(memory, tensors)):
            self.check(call(*arguments))

        return run


def difference(ours, theirs):
    """The largest of a head, as a part of its length. Ours is b s h d, theirs b h s d."""
    ours, theirs = ours.transpose(1, 2).double(), theirs.detach().double()
    # A head of normal numbers is at least about this long, of however many keys. Only gradients
    # that cancel are shorter: those of one key are 0, or its rounding, which nothing is a part of.
    usual = theirs.shape[-1] ** 0.5
    lengths = theirs.norm(dim=(2, 3)).clamp(min=usual)
    return ((ours - theirs).norm(dim=(2, 3)) / lengths).max().item()


def flops(setting, backward):
    pairs = setting["seqlen"] ** 2
    if setting["causal"]:
        pairs = setting["seqlen"] * (setting["seqlen"] + 1) / 2
    forward = 4 * setting["batch"] * setting["heads"] * pairs * setting["dim"]
    return forward * (2.5 if backward else 1)


def in_turns(functions, budget):
    """Seconds of each, median and least: one warm-up, then rounds until the budget is spent."""
    for function in functions:
        function()
    samples = [[] for _ in functions]
    start = time.perf_counter()
    while len(samples[0]) < 5 or time.perf_counter() - start < budget:
        for function, taken in zip(functions, samples):
            time.sleep(0.02)  # the other's threads may still be spinning on these cores
            begin = time.perf_counter()
            function()
            taken.append(time.perf_counter() - begin)
    return [(statistics.median(taken), min(taken)) for taken in samples], len(samples[0])


def compare(strobe, setting, threads, backward, budget):
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    dtype = DTYPES[setting["dtype"]][1]
    shape = (setting["batch"], setting["seqlen"], setting["heads"], setting["dim"])
    q, k, v, dout = (torch.randn(shape).to(dtype) for _ in range(4))
    out, dq, dk, dv = (torch.empty(shape, dtype=dtype) for _ in range(4))
    lse = torch.empty(shape[0], shape[2], shape[1])
    tensors = Tensors(q=view(q), k=view(k), v=view(v), out=view(out), lse=view(lse))
    ours = strobe.runner(strobe.plan(setting, False, threads), tensors)
    ours()

    attention = torch.nn.functional.scaled_dot_product_attention
    leaves = [x.transpose(1, 2).contiguous().requires_grad_(backward) for x in (q, k, v)]
    dout_t = dout.transpose(1, 2).contiguous()
    result = attention(*leaves, is_causal=setting["causal"])
    differs_by = difference(out, result)
    if backward:
        tensors = Tensors(
            q=view(q),
            k=view(k),
            v=view(v),
            out=view(out),
            lse=view(lse),
            dout=view(dout),
            dq=view(dq),
            dk=view(dk),
            dv=view(dv),
        )
        ours = strobe.runner(strobe.plan(setting, True, threads), tensors)

        def theirs():
            torch.autograd.grad(result, leaves, dout_t, retain_graph=True)

        grads = torch.autograd.grad(result, leaves, dout_t, retain_graph=True)
        ours()
        differs_by = max(map(difference, (dq, dk, dv), grads))
    else:

        def theirs():
            with torch.no_grad():
                attention(*leaves, is_causal=setting["causal"])

    ((a, a_least), (b, b_least)), rounds = in_turns([ours, theirs], budget)
    work = flops(setting, backward) / 1e9
    return {
        "pass": "backward" if backward else "forward",
        "threads": threads,
        **setting,
        "strobe_ms": a * 1e3,
        "torch_ms": b * 1e3,
        "strobe_gflops": work / a,
        "torch_gflops": work / b,
        "ratio": b / a,
        "strobe_least_ms": a_least * 1e3,
        "torch_least_ms": b_least * 1e3,
        "ratio_of_least": b_least / a_least,
        "rounds": rounds,
        "difference": differs_by,
    }


def machine():
    name = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith(("model name", "CPU part"))
        ),
        platform.machine(),
    )
    return {"cpu": name, "cores": len(os.sched_getaffinity(0)), "torch": torch.__version__}


def settings(args):
    for dtype in args.dtype:
        for dim in args.dim:
            for causal in (False, True):
                for seqlen in args.seqlen:
                    yield {
                        "batch": args.batch,
                        "heads": args.heads,
                        "seqlen": seqlen,
                        "dim": dim,
                        "dtype": dtype,
                        "causal": causal,
                    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="build/libstrobe.so")
    parser.add_argument("--threads", type=int, nargs="+", default=[len(os.sched_getaffinity(0))])
    parser.add_argument("--dtype", nargs="+", default=["fp32", "bf16"], choices=DTYPES)
    parser.add_argument("--dim", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--seqlen", type=int, nargs="+", default=[4096])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument(
        "--passes", nargs="+", default=["forward", "backward"], choices=["forward", "backward"]
    )
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for one row")
    parser.add_argument("--commit", default="", help="what was built; asked of git if not given")
    parser.add_argument("--json", help="append one record a line to this file")
    args = parser.parse_args()
    commit = (
        args.commit
        or subprocess.run(
            ["git", "describe", "--always", "--dirty"], capture_output=True, text=True
        ).stdout.strip()
    )
    strobe = Strobe(args.library)
    command = "python3 " + " ".join(sys.argv)
    print(
        f"{'pass':9} {'threads':>7} {'dtype':5} {'s':>5} {'d':>4} {'mask':6} "
        f"{'strobe':>8} {'torch':>8} {'ratio':>6} {'least':>6}  GFLOP/s by medians"
    )
    for threads in args.threads:
        for setting in settings(args):
            for which in args.passes:
                row = compare(strobe, setting, threads, which == "backward", args.budget)
                if not row["difference"] <= MOST_DIFFERENCE[row["dtype"]]:  # nor is it for NaN
                    raise SystemExit(f"strobe and torch disagree: {row}")
                print(
                    f"{row['pass']:9} {threads:7} {row['dtype']:5} {row['seqlen']:5} "
                    f"{row['dim']:4} {'causal' if row['causal'] else 'none':6} "
                    f"{row['strobe_gflops']:8.0f} {row['torch_gflops']:8.0f} {row['ratio']:6.2f}"
                    f" {row['ratio_of_least']:6.2f}  differ by {row['difference']:.1e}",
                    flush=True,
                )
                if args.json:
                    with open(args.json, "a") as file:
                        file.write(
                            json.dumps(
                                {"commit": commit, "command": command, "machine": machine(), **row}
                            )
                            + "\n"
                        )


if __name__ == "__main__":
    main()
