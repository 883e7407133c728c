#!/usr/bin/env bash
# Installs a build and uses it from outside, by CMake and by pkg-config: run.sh BUILD WORK
set -euo pipefail
build=$1 work=$2
here=$(cd "$(dirname "$0")" && pwd)
prefix=$work/prefix

rm -rf "$work"
mkdir -p "$work"
"${CMAKE:-cmake}" --install "$build" --prefix "$prefix" >"$work/install.log"

echo "== C++ with find_package(strobe)"
"${CMAKE:-cmake}" -S "$here/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix"
"${CMAKE:-cmake}" --build "$work/consumer"
"$work/consumer/consumer"

echo "== C with pkg-config"
pc=$(find "$prefix" -name strobe.pc)
export PKG_CONFIG_PATH=${pc%/*}
read -ra flags <<<"$(pkg-config --cflags --libs strobe)"
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror "$here/consumer/consumer.c" -o "$work/consumer_c" \
  "${flags[@]}" -lm -Wl,-rpath,"$(pkg-config --variable=libdir strobe)"
"$work/consumer_c"

if [[ -x $prefix/bin/strobe ]]; then
  echo "== the installed program"
  "$prefix/bin/strobe" list
fi
