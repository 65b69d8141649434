# The user commands. CMakeLists.txt is the real build; the work behind each command is in scripts/.
#   make WERROR=1 ...        treat warnings as errors
#   make JOBS=8 ...          compile this many files at once (default: limited by cores and free memory)
#   make demo ARGS='--time-budget 60s'      what else `harness sweep` is told
#   make CMAKE_FLAGS=... ... pass flags to CMake, such as CMAKE_FLAGS=-DHARNESS_MARCH=x86-64-v3
.PHONY: all setup build demo test soak bench accuracy bundle install lint asan gpu-check clean help
.NOTPARALLEL:

PREFIX = /usr/local
export WERROR JOBS CMAKE_FLAGS DESTDIR PARTS TESTS

all: build

help:
	@echo "make            build the binary (build/release/bin/harness; ./harness starts it)"
	@echo "make setup      install missing packages (Debian or Ubuntu, as root); elsewhere, list what is missing"
	@echo "make demo       set up, build what it needs, and sweep real training steps on 2 ranks of this machine"
	@echo "make test       set up, build, and run all tests"
	@echo "make asan       build with the address and undefined-behaviour sanitizers and run all tests"
	@echo "make lint       run clang-format and clang-tidy over the sources"
	@echo "make bench      run the Google Benchmark programs (for the comparison with PyTorch, see bench/README.md)"
	@echo "make accuracy   compare predicted with published steps, and write docs/accuracy.md"
	@echo "make soak       run the tests that take too long for make test: 200 killed jobs, repeated sweeps, 128 ranks"
	@echo "                (only some: PARTS=\"aa ranks\", or PARTS=tests TESTS=e2e/Pairs)"
	@echo "make gpu-check  show what one GPU can show, in eleven minutes: is the cuda backend right, and how fast?"
	@echo "make bundle     pack the binary, mpirun and their libraries into one archive for nodes without packages"
	@echo "make install    install into PREFIX=/usr/local or any other folder, which may be moved; honours DESTDIR"
	@echo "make clean      remove build/"

setup:
	@scripts/setup.sh

build:
	@scripts/build.sh release harness_program_bin

demo:
	@scripts/setup.sh --demo
	@scripts/demo.sh configs/laptop.yaml 2 $(ARGS)

test: setup
	@scripts/build.sh release
	@scripts/test.sh release

soak: setup
	@scripts/build.sh release
	@scripts/soak.sh

gpu-check: build
	@scripts/first_light.sh

bench: setup
	@scripts/build.sh release benchmarks
	@scripts/bench.sh

accuracy: setup
	@scripts/build.sh release accuracy
	@build/release/bench/accuracy configs > build/accuracy.md
	@mv build/accuracy.md docs/accuracy.md

bundle: setup
	@scripts/bundle.sh

install:
	@scripts/install.sh release "$(PREFIX)"

lint:
	@scripts/setup.sh --dev
	@scripts/build.sh check --configure-only
	@scripts/lint.sh

asan:
	@scripts/setup.sh --dev
	@scripts/build.sh asan
	@scripts/test.sh asan

clean:
	rm -rf build
