#!/bin/sh
# Spans of the CUDA backend, which is a library of its own, are in the recordings of libstrobe: a
# kernel is compiled in the first process, and found on disk in the second. What a profiling library
# ($2, which is not real) and profilers tell is in traces and profiles.
set -eu
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export STROBE_CACHE_DIR="$folder/cache" STROBE_CUPTI=/nowhere
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
"$program" watch --device cuda --impl flash --problem "b1 sq16 h1 d16 bf16" --rounds 2 --every 0.01 |
  grep -q "^2 rounds"

if grep -q '"name": "stream ' "$folder/second.json"; then
  echo "a GPU that nobody looked at is in the trace"
  exit 1
fi

# With a profiling library, and with profilers on the path.
export STROBE_CUPTI="$2"
trace third
for name in "GPU 0, emulated GPU" "stream 7" "strobe::forward(float const\*)" fill; do
  grep -q "\"name\": \"$name\"" "$folder/third.json"
done
mkdir "$folder/bin"
cat >"$folder/bin/ncu" <<'END'
#!/bin/sh
[ "$1" = --import ] && { printf '  forward\n    Section: Memory Workload Analysis\n    L2 90\n'; exit; }
while [ "$1" != --export ]; do shift; done
export=$2
shift 2
"$@" && echo report >"$export"
END
printf '#!/bin/sh\necho "it is broken" >&2\nexit 3\n' >"$folder/bin/nsys"
chmod +x "$folder/bin/ncu" "$folder/bin/nsys"
PATH="$folder/bin:$PATH" "$program" profile --impl cuda:flash --no-grad --repeats 1 \
  --problem "b1 sq16 h1 d16 bf16" --out "$folder/profile"
cd "$folder/profile"
grep -q "wait for the device" kernel_summary.txt
grep -q "cuda:0, emulated GPU" SUMMARY.md
grep -q "^cuda:0, emulated GPU" comparison_results.txt
grep -q "^cuda:flash " comparison_results.txt
if grep -q "^standard " comparison_results.txt; then
  echo "a GPU is compared with the CPU"
  exit 1
fi
grep -q "strobe::forward(float const\*) *kernel" kernel_summary.txt
grep -q "dram__bytes_read.sum" memory_metrics.txt
grep -q "sm__pipe_tensor_cycles_active" compute_metrics.txt
grep -q "| Tensor cores | 70.0 % of its peak |" SUMMARY.md
grep -q '`nsys` (failed with status 3, "it is broken": try' SUMMARY.md
grep -q '`ncu` left' SUMMARY.md
grep -q "L2 90" ncu_memory_metrics.txt
test "$(cat flash_attn_ncu_full.ncu-rep)" = report
