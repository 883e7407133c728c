#!/usr/bin/env python3
"""How flash attention on the CPU scales: with threads, to short problems, to odd head dims.

Times the library through its C interface, every problem with every number of threads in turns, and
prints the figures that the bars ask for, beside how the machine's own peaks grow with threads. With
--json, one record a line.

    python3 bench/cpu_scaling.py --library build/libstrobe.so --threads 1 2 16
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import torch
from cpu_against_torch import DTYPES, Strobe, Tensors, flops, in_turns, machine, view


def runner(strobe, setting, backward, threads):
    torch.manual_seed(0)
    shape = (setting["batch"], setting["seqlen"], setting["heads"], setting["dim"])
    dtype = DTYPES[setting["dtype"]][1]
    q, k, v, dout = (torch.randn(shape).to(dtype) for _ in range(4))
    out, dq, dk, dv = (torch.empty(shape, dtype=dtype) for _ in range(4))
    lse = torch.empty(shape[0], shape[2], shape[1])
    given = {"q": q, "k": k, "v": v, "out": out, "lse": lse}
    forward = strobe.runner(
        strobe.plan(setting, False, threads),
        Tensors(**{name: view(x) for name, x in given.items()}),
    )
    forward()
    if backward:
        given |= {"dout": dout, "dq": dq, "dk": dk, "dv": dv}
        call = strobe.runner(
            strobe.plan(setting, True, threads),
            Tensors(**{name: view(x) for name, x in given.items()}),
        )
    else:
        call = forward
    repeat = max(1, int(5e9 / flops(setting, backward)))  # short ones many times in a sample

    def run(keep=given):
        for _ in range(repeat):
            call()

    return run, flops(setting, backward) * repeat / 1e9


def measure(strobe, problems, budget):
    """GFLOP/s of each (setting, backward, threads), by the least time."""
    runs = [runner(strobe, *problem) for problem in problems]
    times, _ = in_turns([run for run, _ in runs], budget)
    return [work / least for (_, least), (_, work) in zip(times, runs)]


def peaks(program, threads, turns=3):
    """TFLOP/s of multiply-adds with each number of threads, the best of some turns: by dtype."""
    best = [{} for _ in threads]
    with tempfile.TemporaryDirectory() as cache:  # which keeps the best of the turns before
        for _ in range(turns):
            for place, count in enumerate(threads):
                said = subprocess.run(
                    [program, "info", "--measure", "--threads", str(count), "--json", "-"],
                    env=os.environ | {"STROBE_CACHE_DIR": cache},
                    check=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
                best[place] = json.loads(said.stdout)["peaks"][0]["tflops"]
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="build/libstrobe.so")
    parser.add_argument("--program", default="build/strobe", help="whose info measures peaks")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, len(os.sched_getaffinity(0))])
    parser.add_argument("--dtype", nargs="+", default=["fp32", "bf16"], choices=DTYPES)
    parser.add_argument("--budget", type=float, default=4.0, help="seconds for one group")
    parser.add_argument("--commit", default="")
    parser.add_argument("--json", help="append one record a line to this file")
    args = parser.parse_args()
    strobe = Strobe(args.library)
    torch.set_num_threads(1)

    def report(what, base, names, rates):
        for name, rate in zip(names, rates):
            print(f"{what:44} {name:12} {rate:8.0f} GFLOP/s {rate / rates[base]:6.2f}", flush=True)
        if args.json:
            with open(args.json, "a") as file:
                file.write(
                    json.dumps(
                        {
                            "commit": args.commit,
                            "command": "python3 " + " ".join(sys.argv),
                            "machine": machine(),
                            "what": what,
                            "names": names,
                            "gflops": rates,
                            "relative": [rate / rates[base] for rate in rates],
                        }
                    )
                    + "\n"
                )

    def time(what, base, names, problems):
        report(what, base, names, measure(strobe, problems, args.budget))

    counts = [str(t) for t in args.threads]
    peak = peaks(args.program, args.threads)
    for dtype in args.dtype:
        report(f"peak, {dtype}", 0, counts, [1e3 * of_count[dtype] for of_count in peak])
        for backward in (False, True):
            way = "backward" if backward else "forward"
            for heads in (8, 1):
                setting = {
                    "batch": 1,
                    "heads": heads,
                    "seqlen": 4096,
                    "dim": 128,
                    "dtype": dtype,
                    "causal": False,
                }
                time(
                    f"threads, {dtype} {way} s4096 h{heads} d128",
                    0,
                    counts,
                    [(setting, backward, t) for t in args.threads],
                )
            shape = {"batch": 1, "heads": 8, "dim": 64, "dtype": dtype, "causal": False}
            time(
                f"short, {dtype} {way} h8 d64, 2 threads",
                1,
                ["s128", "s4096"],
                [({**shape, "seqlen": s}, backward, 2) for s in (128, 4096)],
            )
            shape = {"batch": 1, "heads": 4, "seqlen": 2048, "dtype": dtype, "causal": False}
            time(
                f"odd dims, {dtype} {way} s2048 h4, 2 threads",
                0,
                ["64", "59", "136", "129"],
                [({**shape, "dim": d}, backward, 2) for d in (64, 59, 136, 129)],
            )


if __name__ == "__main__":
    main()
