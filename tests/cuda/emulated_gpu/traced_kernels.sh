#!/bin/sh
# Spans of the CUDA backend, which is a library of its own, are in the recordings of libstrobe: a
# kernel is compiled in the first process, and found on disk in the second.
set -eu
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export STROBE_CACHE_DIR="$folder/cache"
trace() {
  "$program" bench --device cuda --impl flash --no-grad --repeats 1 \
    --problem "b1 sq16 h1 d16 bf16" --profile "$folder/$1.json"
}
trace first
trace second
for name in plan "load kernel" "look in the disk cache" compile run "wait for the device"; do
  grep -q "\"name\": \"$name\"" "$folder/first.json"
done
if grep -q '"name": "compile"' "$folder/second.json"; then
  echo "a kernel that was kept is compiled again"
  exit 1
fi
"$program" profile --device cuda --impl flash --no-grad --repeats 1 --problem "b1 sq16 h1 d16 bf16" \
  --out "$folder/profile"
grep -q "not read yet" "$folder/profile/SUMMARY.md"
grep -q "wait for the device" "$folder/profile/kernel_summary.txt"
"$program" watch --device cuda --impl flash --problem "b1 sq16 h1 d16 bf16" --rounds 2 --every 0.01 |
  grep -q "^2 rounds"
