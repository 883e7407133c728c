#!/usr/bin/env bash
# Does in a copy of the tree what CONTRIBUTING.md says: a folder and a line. add_backend.sh SOURCE WORK
# Compiles just the two files that this touches; the kernel itself is checked by online_softmax_test.cpp.
set -euo pipefail
source=$1 work=$2
tree=$work/tree build=$work/build

rm -rf "$work"
mkdir -p "$tree"
cp -r "$source"/{CMakeLists.txt,cmake,include,src} "$tree"
cp -r "$source/examples/online_softmax" "$tree/src/online_softmax"
sed -i 's/^strobe_backend(reference)$/&\nstrobe_backend(online_softmax)/' "$tree/src/CMakeLists.txt"

"${CMAKE:-cmake}" -G Ninja -S "$tree" -B "$build" -DSTROBE_BUILD_TESTS=OFF -DSTROBE_BUILD_CLI=OFF \
  -DSTROBE_UNITY_BUILD=OFF
objects=src/CMakeFiles/strobe_objects.dir
"${CMAKE:-cmake}" --build "$build" --target \
  "$objects/builtin.cpp.o" "$objects/online_softmax/online_softmax.cpp.o"
grep -F 'online_softmax::register_implementations(registry);' "$build/src/builtin.cpp"
