#!/usr/bin/env bash
# An ISA's object file may define nothing that the linker could merge with another file's copy: a
# weak symbol outside its own namespace (an inline function of the standard library, say) might be
# the copy that every other file gets, AVX-512 instructions and all.
set -euo pipefail
status=0
for object in "$@"; do
  isa=$(basename "$object" .cpp.o)
  [[ $object == */isa/* && $isa != scalar ]] || continue
  leaks=$(nm -C "$object" | grep -E ' [WVu] ' | grep -v "strobe::cpu::$isa::" || true)
  if [[ -n $leaks ]]; then
    printf '%s shares symbols with the rest of the program:\n%s\n' "$object" "$leaks"
    status=1
  fi
  checked=1
done
[[ ${checked:-0} == 1 ]] || { echo "no object of an ISA was given"; exit 1; }
exit $status
