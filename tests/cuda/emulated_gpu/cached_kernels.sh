#!/bin/sh
# A process that finds all its kernels on disk does not load the compiler: here it could not, for
# only the name, the size and the time of the library are left.
set -eu
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
library=$folder/libnvrtc.so
cp -p "$STROBE_NVRTC" "$library"
export STROBE_NVRTC="$library" STROBE_CACHE_DIR="$folder/cache"
verify() { "$program" verify --impl cuda:flash --pass forward --problem "b1 sq20 h1 d16 bf16"; }
verify
touch -r "$library" "$folder/time"
head -c "$(stat -c %s "$library")" /dev/zero > "$folder/zeros"
cat "$folder/zeros" > "$library"
touch -r "$folder/time" "$library"
verify
rm "$library"
if verify; then
  echo "the compiler is gone, and nobody noticed"
  exit 1
fi
