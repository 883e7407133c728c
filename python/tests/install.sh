#!/usr/bin/env bash
# Installs the package from source into an environment of its own and uses it: install.sh PYTHON SOURCE WORK
# What was compiled stays in WORK for the next time. Status 77 where packages cannot be fetched.
set -euo pipefail
python=$1 source=$2 work=$3
unset PYTHONPATH
export STROBE_CACHE_DIR=$work/cache

skip() {
  echo "$1"
  exit 77
}
rm -rf "$work/environment"
mkdir -p "$work"
"$python" -m venv "$work/environment" >"$work/venv.log" 2>&1 || skip "$python cannot make an environment"
pip=("$work/environment/bin/python" -m pip --disable-pip-version-check --quiet)
"${pip[@]}" install numpy scikit-build-core nanobind || skip "packages cannot be fetched"

# Not optimised: it is the way there that is tested.
"${pip[@]}" install "$source" --no-build-isolation --no-deps \
  --config-settings build-dir="$work/build" --config-settings cmake.build-type=Debug
cd "$work"  # where there is no folder strobe to import instead
"$work/environment/bin/python" - <<'PROGRAM'
import importlib.metadata
import sys
import sysconfig

import numpy as np
import strobe

# From CPython 3.12 on one wheel serves all versions; before, each has its own.
stable = sys.version_info >= (3, 12)
file = strobe._native.__file__
assert file.endswith(".abi3.so" if stable else sysconfig.get_config_var("EXT_SUFFIX")), file
wheel = importlib.metadata.distribution("strobe").read_text("WHEEL")
own = "cp{}{}".format(*sys.version_info)
assert ("cp312-abi3" if stable else f"{own}-{own}") in wheel, wheel

q, k, v = (np.random.rand(2, 128, 8, 64).astype(np.float32) for _ in range(3))
out = strobe.attention(q, k, v, causal=True)
oracle = strobe.attention(q, k, v, causal=True, implementation="oracle")
np.testing.assert_allclose(out, oracle, atol=1e-6)

# The CUDA backend is there too, with what it says of this machine.
assert "cuda:flash" in strobe.implementations()
print(strobe.__version__, strobe.__file__, strobe.info())
PROGRAM

# So is the program, where the libraries that it needs are.
if compgen -G "$work"/environment/lib/python*/site-packages/strobe/_laboratory* >/dev/null; then
  "$work/environment/bin/python" -m strobe compare --quick --problem "s64 h2 d16 fp32"
fi
