#!/usr/bin/env bash
# However many cores there are, scripts/test-gpu asks for shares of the grid that have cases, and for
# all of them.
# usage: grid_shares.sh SCRIPT PROGRAM
set -euo pipefail
script=$1 program=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Stands in for the program where there is no GPU, and takes note of the shares.
cat >"$folder/strobe" <<END
#!/bin/sh
echo "\$*" | sed -n 's|.*--share \([^ ]*\).*|\1|p' >>"$folder/asked"
END
chmod +x "$folder/strobe"

for cores in 2 1000; do
  : >"$folder/asked"
  "$script" "$folder" quick $cores >/dev/null
  sort -n "$folder/asked" >"$folder/sorted"
  shares=$(wc -l <"$folder/sorted")
  seq -f "%g/$shares" "$shares" | diff - "$folder/sorted"
done
"$program" verify --grid quick --share "$shares/$shares" --impl flash --pass forward
