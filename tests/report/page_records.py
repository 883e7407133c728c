"""Made-up result records for the tests of the report page: plausible figures, every kind of row."""

import json
import math

XEON = {"architecture": "x86_64", "cpu": "Intel(R) Xeon(R) Processor", "cores": 16,
        "isa": "avx512", "memory": 135148457984, "threads": 2, "gpu": None,
        "peaks": {"fp32_tflops": 0.3313, "bandwidth_gbps": 21.4}}
ARM = {"architecture": "aarch64", "cpu": "Neoverse-N1", "cores": 4, "isa": "neon",
       "memory": 16777216000, "threads": 4, "gpu": None}

# Fraction of the machine's peak that each reaches on a long problem, and its error on fp32.
SPEED = {"flash": 0.62, "standard": 0.21, "oracle": 0.004}
ERROR = {"flash": 5.3e-8, "standard": 7.9e-8, "oracle": 1.1e-9}

HOSTILE = ["</script><script>alert(1)</script>", "<!-- <script>", "<img src=x onerror=alert(1)>",
           "\u2028 line \u2029 paragraph", "'\"&amp;&lt;", "{{chart.js}}", "__proto__"]


def problem_text(fields, pass_):
    words = [f"b{fields['batch']}", f"sq{fields['seqlen_q']}", f"h{fields['heads']}",
             f"d{fields['dim']}", fields["dtype"]]
    if fields["causal"]:
        words.append("causal")
    if pass_ == "backward":
        words.append("bwd")
    return " ".join(words)


def fields_of(length, dim=64, dtype="fp32", causal=False, batch=1, heads=8):
    return {"batch": batch, "seqlen_q": length, "seqlen_k": length, "heads": heads,
            "heads_k": heads, "dim": dim, "dim_v": dim, "dtype": dtype, "layout": "separate",
            "scale": 1 / math.sqrt(dim), "causal": causal, "window": [-1, -1], "softcap": 0.0,
            "alibi": False, "sinks": False, "bias": None, "dropout": 0.0}


def base(implementation, fields, pass_, machine):
    return {"schema": 1, "implementation": implementation, "device": "cpu",
            "problem": problem_text(fields, pass_), "fields": fields, "pass": pass_,
            "status": "ok", "plan": {"isa": machine["isa"], "key_block": "128", "threads": "2"},
            "machine": machine, "sampling": {"cache": "warm"}, "version": "0.1.0",
            "commit": "e836a84cadd2",
            "command": "strobe compare --json records.jsonl", "time": "2026-11-15T04:07:53Z"}


def timed(implementation, fields, pass_="forward", machine=XEON, noise=0.0):
    record = base(implementation, fields, pass_, machine)
    length, dim = fields["seqlen_q"], fields["dim"]
    flops = 4 * fields["batch"] * fields["heads"] * length * length * dim
    flops *= (0.5 if fields["causal"] else 1) * (2.5 if pass_ == "backward" else 1)
    size = 4 if fields["dtype"] == "fp32" else 2
    moved = 4 * fields["batch"] * fields["heads"] * length * dim * size
    # Operands that fit into a cache come from there; bf16 has arithmetic of its own.
    peak = 0.3313 if size == 4 else 0.9
    bandwidth = 90.0 if moved < 2e6 else 45.0 if moved < 2e7 else 21.4
    intensity = flops / moved
    attainable = min(peak, intensity * bandwidth / 1000)
    tflops = attainable * SPEED.get(implementation, 0.3) * length / (length + 300) * (1 + noise)
    tflops *= math.sqrt(dim / 128) if dim < 128 else 1
    ms = flops / tflops / 1e9
    record.update({
        "memory": {"inputs": moved, "outputs": moved // 3, "workspace": 632448,
                   "peak": moved * 4 // 3 + (632448 if implementation == "flash"
                                             else length * length * fields["heads"] * 4)},
        "ms": {"min": ms * 0.96, "mean": ms * 1.02, "max": ms * 1.3, "p50": ms, "p95": ms * 1.2,
               "stddev": ms * 0.05, "ci95": [ms * 0.97, ms * 1.08]},
        "samples": [ms * (0.96 + 0.02 * i) for i in range(15)],
        "tflops": {"p50": tflops, "best": tflops / 0.96}, "gbps": moved / ms / 1e6,
        "roofline": tflops / attainable,
        "roof": {"tflops": attainable, "bound": "compute" if attainable == peak else "memory",
                 "intensity": intensity, "peak_tflops": peak, "bandwidth_gbps": bandwidth},
        "error": {"rule": "pass", "scope": "32 rows",
                  "max": ERROR.get(implementation, 1e-7) * (1 if size == 4 else 4000),
                  "mean": ERROR.get(implementation, 1e-7) / 6}})
    return record


def idle(implementation, fields, status, reason, pass_="forward", machine=XEON):
    record = base(implementation, fields, pass_, machine)
    return {**record, "status": status, "reason": reason,
            "memory": {"inputs": 1, "outputs": 1, "workspace": 0, "peak": 2}}


def verified(implementation, fields, rule, worst):
    record = base(implementation, fields, "backward", XEON)
    tensor = {"max": worst, "mean": worst / 5, "bound": 2e-6, "mean_bound": 4e-7,
              "baseline_max": 1e-6, "baseline_mean": 2e-7, "worst": [0, 1, 2, 3], "rule": rule}
    return {**record, "status": "ok" if rule == "pass" else "failed",
            "memory": {"workspace": 4096},
            "inputs": {"scale": 1.0, "distribution": "normal", "storage": "contiguous",
                       "masked_bias": False, "seed": 18446744073709551615},
            "error": {"rule": rule, "max": worst, "mean": worst / 5, "out": tensor, "dq": tensor},
            **({} if rule == "pass" else {"reason": "dq is further from the oracle than allowed"})}


def tour():
    """Lengths, dims, causal, passes, implementations, and every way not to succeed."""
    records = []
    for length in (256, 512, 1024, 2048, 4096, 8192):
        for causal in (False, True):
            for pass_ in ("forward", "backward"):
                fields = fields_of(length, causal=causal)
                records.append(timed("flash", fields, pass_))
                if length < 8192:
                    records.append(timed("standard", fields, pass_))
                else:
                    records.append(idle("standard", fields, "out-of-memory",
                                        "needs 2.15 GB of workspace, 1.20 GB are free", pass_))
                if length <= 1024 and pass_ == "forward":
                    records.append(timed("oracle", fields, pass_))
    for dim in (32, 80, 96, 128, 256):
        records += [timed("flash", fields_of(2048, dim)), timed("standard", fields_of(2048, dim))]
    records.append(idle("flash", fields_of(1024, dtype="int8"), "unsupported",
                        "flash lacks int8 inputs"))
    wrong = timed("shortcut", fields_of(2048), noise=2.0)
    wrong["error"].update({"rule": "fail", "max": 3.1e-3})
    wrong.update({"status": "failed",
                  "reason": "out is 3.10e-03 from the oracle, allowed is 1.6e-07"})
    records.append(wrong)
    records += [verified("flash", fields_of(113, dtype="bf16"), "pass", 1.2e-6),
                verified("shortcut", fields_of(113, dtype="bf16"), "fail", 4e-3)]
    return records


def two_machines():
    return [timed(name, fields_of(length), machine=machine, noise=noise)
            for machine, noise in ((XEON, 0.0), (ARM, -0.6))
            for name in ("flash", "standard") for length in (512, 1024, 2048)]


def sweep():
    """Hundreds of rows and a dozen implementations."""
    names = ["flash", "standard", "oracle"] + [f"kernel-{i}" for i in range(9)]
    return [timed(name, fields_of(length, dim, dtype, causal, 16384 // length), noise=0.04 * i)
            for i, name in enumerate(names) for length in (1024, 2048, 4096, 8192, 16384)
            for dim in (64, 128, 256) for dtype in ("fp32", "bf16") for causal in (False, True)]


def hostile():
    records = []
    for i, text in enumerate(HOSTILE):
        record = timed("flash", fields_of(256 * (i + 1)))
        record.update({"implementation": text, "problem": text, "command": text, "commit": text,
                       "plan": {text: text}, "machine": {"cpu": text, "isa": text, "cores": text}})
        records.append(record)
    odd = [{"schema": 1}, {"schema": 1, "fields": None, "machine": 7, "ms": [], "error": "none"},
           {"schema": 1, "implementation": {"a": 1}, "ms": {"p50": "fast"}, "samples": 3},
           {"schema": 1, "status": "ok", "ms": {"p50": 0.002}, "fields": {"seqlen_k": "long"}}]
    return records + odd


def write(path, records):
    with open(path, "w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")
