#!/bin/sh
# What `strobe tune` keeps is what later plans take. With 16 keys a block of 128 wastes most of its
# work, so that the smaller one wins also where the GPU is a CPU.
set -eu
strobe=$1
STROBE_CACHE_DIR=$(mktemp -d)
export STROBE_CACHE_DIR
trap 'rm -r "$STROBE_CACHE_DIR"' EXIT
problem="b1 sq100 sk16 h1 d64 bf16"

expect() {  # expect WORDS COMMAND...: that the command prints them
  words=$1
  shift
  "$@" >"$STROBE_CACHE_DIR/said" 2>&1 || true
  grep -q -- "$words" "$STROBE_CACHE_DIR/said" || {
    echo "'$words' is missing in what $* prints:"
    cat "$STROBE_CACHE_DIR/said"
    exit 1
  }
}
tune() {
  expect "$1" "$strobe" tune --problem "$problem" --pass forward --budget 1 --variant "$2" $3
}
plan() {
  expect "$1" "$strobe" verify --impl cuda:flash --problem "$problem" --pass forward $2
}

tune "It is not kept" 128x48/1/2 --dry-run
touch "$STROBE_CACHE_DIR/tuned"
tune "the variant 128x48/1/2 is not kept: .*STROBE_CACHE_DIR" 128x48/1/2 ""
rm "$STROBE_CACHE_DIR/tuned"
plan "tile 128x128.*tuned no" ""
tune "Fastest: 128x48/1/2" 128x48/1/2 ""
plan "tile 128x48.*tuned yes" ""
plan "tile 128x128.*tuned no" "--variant 128x128/2/2"
plan "variant is '128x50'" "--variant 128x50"
expect "128x48/1/2 *128x128/2/2" "$strobe" cache list --only tuned
tune "No variant is faster" 128x192/2/2 ""
plan "tile 128x48.*tuned yes" ""
expect "Removed" "$strobe" cache clear --only tuned
plan "tile 128x128.*tuned no" ""
