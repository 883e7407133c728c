"""No inner loop of a product may send vectors through the stack, nor pointers through vectors:
check_inner_loops.py OBJECT...

A compiler that runs out of registers keeps an accumulator on the stack, stores and loads it in
every step, and takes up to twice as long; no test of results can see that. So this disassembles the
objects and looks at their innermost loops. A loop of hardly anything but multiply-adds and loads is
that of a product, and no vector or tile register may meet the stack in it. A counter or a pointer
may: that costs next to nothing. But a compiler may also keep a pointer in a vector register, for the
sake of a minimum elsewhere; to move it and to get it out takes slots of the multipliers.

  --objdump PROGRAM   for the objects' architecture
  --probe OBJECT      loops called `spilling` and `straying` must be found guilty in it, one called
                      `calm` not; without that a check that finds nothing would mean nothing
  --all               list every loop of a product, and others with as many multiply-adds, with
                      what any register has to do with the stack

Exits with 77, which ctest takes as "skipped", where there is no such objdump.
"""

import argparse
import collections
import re
import shutil
import subprocess
import sys

MULTIPLY_ADD = {
    "x86-64": re.compile(r"vf(n?m)(add|sub)\d*[ps][sd]|vdpbf16ps|vpdpbusds?|vpdpwssds?|tdp\w+"),
    "aarch64": re.compile(r"fml[as]|fmlal2?|fmadd|bfmmla|bfdot|bfmlal[bt]|(s|u|us)mmla|[su]dot"),
}
# A tile instruction of AMX is worth sixteen others.
TILE_MULTIPLY = re.compile(r"tdp\w+")
ENOUGH = 8
SHARE = 0.4  # of a loop's instructions; packing has less
# An exponential has as many multiply-adds, and constants that may well be on the stack, but it also
# shifts, compares or selects.
OTHER = {
    "x86-64": re.compile(r"vpsll|vcmp|vblend|vmax|vdiv"),
    "aarch64": re.compile(r"(shl|fcm..|bsl|bi[ft]|fmax|fdiv)\s+v"),
}

JUMP = {"x86-64": re.compile(r"j\w+"), "aarch64": re.compile(r"b(\.\w+)?|cbn?z|tbn?z")}
TARGET = re.compile(r"(?:0x)?([0-9a-f]+) <")
# The frame pointer is one only in functions that set it up; in others it is a register like any.
STACK = {"x86-64": "%rsp", "aarch64": "sp"}
FRAME = {"x86-64": "%rbp", "aarch64": "x29"}
SETS_FRAME = {
    "x86-64": re.compile(r"mov\s+%rsp,\s*%rbp"),
    "aarch64": re.compile(r"(mov\s+x29, sp|add\s+x29, sp,)"),
}
OPERAND = {"x86-64": r"\([^)]*{}[,)]", "aarch64": r"\[{}[],]"}
COPY = {
    "x86-64": re.compile(r"v?mov[ad]\w+\s+%[xyz]mm\d+,\s*%[xyz]mm\d+$"),
    "aarch64": re.compile(r"mov\s+v\d+\.16b, v\d+\.16b"),
}
# Between a vector and a register of an address or a counter.
STRAY = {
    "x86-64": re.compile(r"v?mov[dq]\s+(%xmm\d+,\s*%[er]\w+|%[er]\w+,\s*%xmm\d+)$"),
    "aarch64": re.compile(r"fmov\s+([xw]\d+, [ds]\d+|[ds]\d+, [xw]\d+)$"),
}
VECTOR = {"x86-64": re.compile(r"%([xyz]|t)mm\d"), "aarch64": re.compile(r"\b[vqds]\d")}

# Beside tile multiplies the vectors that matter are whole ones, and only if they are stored: what is
# moved in 16 bytes is a pair of pointers, what is only loaded a constant.
TILE = re.compile(r"%tmm\d")
STORED = re.compile(r"v?mov\w+\s+%[yz]mm\d+,\s*\S*\(")


def spilled(text):
    return STORED.match(text) is not None


Instruction = collections.namedtuple("Instruction", "address text")
Loop = collections.namedtuple("Loop", "function body multiplies stack vectors strays is_product")


def disassemble(objdump, path):
    """The architecture and the functions, each a name and its instructions."""
    run = subprocess.run([objdump, "-d", "-C", "--no-show-raw-insn", path], text=True,
                         capture_output=True, check=True)
    if "x86-64" in run.stdout[:500]:
        architecture = "x86-64"
    elif "aarch64" in run.stdout[:500]:
        architecture = "aarch64"
    else:
        sys.exit(f"{path}: neither x86-64 nor aarch64: {run.stdout[:200]!r}")
    functions = []
    for line in run.stdout.splitlines():
        if heading := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            functions.append((heading[1], []))
        elif instruction := re.match(r"\s*([0-9a-f]+):\s+(\S.*)$", line):
            functions[-1][1].append(Instruction(int(instruction[1], 16), instruction[2].strip()))
    return architecture, functions


def innermost_loops(architecture, instructions):
    """Ranges of addresses from the target of a jump backwards to the last jump to it."""
    ends = {}
    for at, text in instructions:
        if not JUMP[architecture].fullmatch(text.split()[0]):
            continue
        target = TARGET.search(text)
        if target and instructions[0].address <= int(target[1], 16) <= at:
            ends[int(target[1], 16)] = at
    loops = sorted(ends.items())
    for start, end in loops:
        if not any(start < other and last <= end for other, last in loops):
            yield start, end


def is_tile_product(body):
    """Blocks of code are not laid out loop by loop: packing may lie between a loop's ends."""
    return not any(re.match(r"vpunpck|vshufi32x4|vperm[it]2w", text) for text in body)


def is_product(architecture, body, multiplies, vectors):
    if any(OTHER[architecture].match(text) for text in body):
        return False
    # Spilling itself, and copies between registers, must not make a product look like another loop.
    copies = sum(bool(COPY[architecture].match(text)) for text in body)
    return multiplies >= SHARE * (len(body) - len(vectors) - copies)


def inspect(architecture, name, instructions):
    has_frame = any(SETS_FRAME[architecture].match(i.text) for i in instructions)
    registers = [STACK[architecture]] + ([FRAME[architecture]] if has_frame else [])
    stack_operand = re.compile("|".join(OPERAND[architecture].format(r) for r in registers))
    for start, end in innermost_loops(architecture, instructions):
        body = [i.text for i in instructions if start <= i.address <= end]
        mnemonics = [text.split()[0] for text in body]
        multiplies = sum(bool(MULTIPLY_ADD[architecture].fullmatch(m)) for m in mnemonics)
        tiles = any(TILE_MULTIPLY.fullmatch(m) for m in mnemonics)
        if multiplies < ENOUGH and not tiles:
            continue
        stack = [text for text in body if stack_operand.search(text)]
        vectors = [text for text in stack if VECTOR[architecture].search(text)]
        if tiles:  # queues and exponentials go on in the same loop: theirs may be constants
            vectors = [text for text in vectors if TILE.search(text) or spilled(text)]
        strays = [text for text in body if STRAY[architecture].match(text)]
        yield Loop(name, body, multiplies, stack, vectors, [] if tiles else strays,
                   is_tile_product(body) if tiles
                   else is_product(architecture, body, multiplies, vectors))


def loops_of(objdump, path):
    architecture, functions = disassemble(objdump, path)
    return [loop for name, code in functions if code for loop in inspect(architecture, name, code)]


def describe(loop):
    function = re.sub(r"strobe::cpu::\w+::|\(anonymous namespace\)::", "", loop.function)
    return (f"{function}: {loop.multiplies} multiply-adds in {len(loop.body)} instructions, "
            f"{len(loop.stack)} on the stack, {len(loop.vectors)} of these with vectors, "
            f"{len(loop.strays)} between vectors and other registers")


def fault(loop):
    """What is wrong with it, None if nothing is or if it is no product's."""
    if not loop.is_product:
        return None
    return "SPILLS" if loop.vectors else "STRAYS" if loop.strays else None


def check_probe(objdump, path):
    products = [loop for loop in loops_of(objdump, path) if loop.is_product]
    guilty = {name: next((fault(loop) for loop in products if name in loop.function and fault(loop)),
                         None)
              for name in ("spilling", "straying", "calm")}
    if not any("calm" in loop.function for loop in products):
        sys.exit(f"{path}: the loop of `calm` was not recognised")
    if guilty != {"spilling": "SPILLS", "straying": "STRAYS", "calm": None}:
        sys.exit(f"{path}: this check cannot tell what is wrong with a loop: {guilty}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--probe")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("objects", nargs="*")
    options = parser.parse_args()
    if shutil.which(options.objdump) is None:
        print(f"skipped: there is no {options.objdump or 'objdump'}")
        sys.exit(77)
    if options.probe:
        check_probe(options.objdump, options.probe)
    products, failed = 0, False
    for path in options.objects:
        for loop in loops_of(options.objdump, path):
            products += loop.is_product
            guilty = fault(loop)
            if guilty or options.all:
                verdict = guilty or ("product" if loop.is_product else "other")
                print(f"{verdict:8} {path.split('/')[-1]}: {describe(loop)}")
            if guilty:
                print("".join(f"    {text}\n" for text in (loop.vectors + loop.strays)[:8]), end="")
                failed = True
    if options.objects and products == 0:
        sys.exit("not one loop of a product was found in the objects")
    print(f"{products} loops of products")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
