# The front door. CMake does the work; this names the jobs and sees to it that the tools are there.

BUILD        ?= build
PREFIX       ?= /usr/local
JOBS         ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 60
GRID         ?= quick
SHARES       ?= $(JOBS)
SHARE        ?= 1/16
TOOLS        ?= memcheck racecheck initcheck
RECORDS      ?=
CMAKE_ARGS   ?=
CTEST_ARGS   ?=

# The architecture that this machine is not.
CROSS := $(if $(filter aarch64,$(shell uname -m)),x86_64,aarch64)

# A build folder that exists keeps the options it was configured with.
configure = if [ -f $(1)/CMakeCache.txt ]; then cmake -B $(1) $(CMAKE_ARGS); \
            else cmake --preset $(2) -B $(1) $(CMAKE_ARGS); fi
ctest     = ctest --output-on-failure --parallel $(JOBS) $(CTEST_ARGS) --test-dir
sources   = find include src tests fuzz examples python -name '*.h' -o -name '*.cpp' -o -name '*.c' \
              -o -name '*.cu' -o -name '*.cuh'

.DEFAULT_GOAL := help
.PHONY: help run build test test-gpu sanitize-gpu bench install format format-check lint asan tsan fuzz cross-test clean

help:  ## list the targets
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 20

run: build  ## compare the implementations, check each, and write the report page build/report.html
	$(BUILD)/strobe compare --budget 1 --json $(BUILD)/compare.jsonl --force
	$(BUILD)/strobe sweep --seqlen 256:2048:*2 --batch 1 --nheads 4 --causal both --pass forward \
	  --impl flash,gemm,standard --budget 0.3 -o $(BUILD)/lengths.jsonl --force
	$(BUILD)/strobe report $(BUILD)/compare.jsonl $(BUILD)/lengths.jsonl --title "Attention on this machine" \
	  -o $(BUILD)/report.html --force

build:  ## build the program, build/strobe
	@scripts/setup run
	@$(call configure,$(BUILD),release)
	cmake --build $(BUILD) --target strobe_cli

test:  ## build everything and run the tests
	@scripts/setup test
	@$(call configure,$(BUILD),release)
	cmake --build $(BUILD)
	$(ctest) $(BUILD)

test-gpu:  ## the tests and a grid on a GPU: GRID=full, SHARES=8 of it at a time, RECORDS=folder
	@scripts/setup test
	@$(call configure,$(BUILD),release)
	cmake --build $(BUILD) --target strobe_cli strobe_test_cuda
	scripts/test-gpu $(BUILD) $(GRID) $(SHARES) $(RECORDS)

sanitize-gpu: build  ## part of a grid under compute-sanitizer: GRID=quick, SHARE=1/16, TOOLS="memcheck", RECORDS=folder
	scripts/sanitize-gpu $(BUILD) $(GRID) $(SHARE) "$(TOOLS)" $(RECORDS)

bench: build  ## time the best implementation on a few problems
	$(BUILD)/strobe bench --repeats 5 --problem "b1 sq1024 h8 d64 fp32"
	$(BUILD)/strobe bench --repeats 5 --problem "b1 sq4096 h8 d128 fp32"
	$(BUILD)/strobe bench --repeats 5 --problem "b1 sq4096 h8 hk2 d128 bf16 causal"
	$(BUILD)/strobe bench --repeats 5 --problem "b1 sq2048 h8 d64 fp32 causal bwd"

install: build  ## install program, library and headers under PREFIX (/usr/local)
	cmake --install $(BUILD) --prefix $(PREFIX)

format:  ## rewrite every source file in the project's style
	@scripts/setup lint
	$(sources) | xargs clang-format -i

format-check:  ## say which lines are not in the project's style
	@scripts/setup lint
	$(sources) | xargs clang-format --dry-run -Werror

# Most of clang-tidy's time goes into what files include, so most checks see the files of a library
# together. These are of what one file has by itself: names that it does not use, and what it includes.
LINT_EACH := clang-diagnostic-* misc-unused-* bugprone-suspicious-include \
             bugprone-forward-declaration-namespace readability-duplicate-include \
             readability-redundant-declaration readability-redundant-preprocessor
comma     := ,
space     := $(subst ,, )
list       = $(subst $(space),$(comma),$(strip $(1)))

lint:  ## clang-tidy over src/
	@scripts/setup run lint
	@$(call configure,build-lint,lint)
	@$(call configure,build-lint-together,lint-together)
	run-clang-tidy -quiet -p build-lint -j $(JOBS) -checks='-*,$(call list,$(LINT_EACH))' '^$(CURDIR)/src/'
	run-clang-tidy -quiet -p build-lint-together -j $(JOBS) \
	  -checks='$(call list,$(addprefix -,$(LINT_EACH)))' '^$(CURDIR)/src/|/Unity/'

# The sanitizers take Clang: it compiles and runs them faster, and the tests meet a second compiler.
asan:  ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/setup test sanitize
	@$(call configure,build-asan,asan)
	cmake --build build-asan
	$(ctest) build-asan

tsan:  ## the threaded tests, of the rooms that have some, under ThreadSanitizer
	@scripts/setup test sanitize
	@$(call configure,build-tsan,tsan)
	cmake --build build-tsan --target strobe_test_core strobe_test_cpu strobe_test_cuda strobe_test_reference
	GTEST_FILTER='*Thread*:*Parallel*' $(ctest) build-tsan --tests-regex '^(core|cpu|cuda|reference)[.]'

fuzz:  ## each fuzz target for FUZZ_SECONDS (60)
	@scripts/setup run sanitize
	@$(call configure,build-fuzz,fuzz)
	cmake --build build-fuzz --target fuzzers
	scripts/fuzz build-fuzz $(FUZZ_SECONDS)

cross-test:  ## build for the other architecture and run its tests under qemu
	@scripts/setup test cross
	@$(call configure,build-cross-$(CROSS),cross-$(CROSS))
	cmake --build build-cross-$(CROSS)
	$(ctest) build-cross-$(CROSS)

clean:  ## remove every build folder
	rm -rf build build-debug build-asan build-tsan build-fuzz build-lint build-lint-together build-cross-*
