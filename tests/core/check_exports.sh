#!/usr/bin/env bash
# A shared library may define for others nothing but what is its own. Where C++'s own library is
# linked statically and seen from outside, a program finds half of it here and half in its own copy.
set -euo pipefail
exports=$(nm -DC --defined-only "$1" | grep -E ' [TDBR] ')
[[ -n $exports ]] || { echo "$1 exports nothing"; exit 1; }
if foreign=$(grep -v strobe <<<"$exports"); then
  printf '%s exports what is not its own:\n%s\n' "$1" "$foreign"
  exit 1
fi
