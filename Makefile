# The few words a person types. The build itself is CMakeLists.txt; what happens behind a word is scripts/.
#   make WERROR=1 …            warnings are errors
#   make JOBS=8 …              compile so many files at once (default: by cores and free memory)
#   make CMAKE_FLAGS=… …       anything for CMake, e.g. CMAKE_FLAGS=-DHARNESS_MARCH=x86-64-v3
.PHONY: all setup build demo test soak bench bundle check asan gpu-check clean help
.NOTPARALLEL:

export WERROR JOBS CMAKE_FLAGS

all: build

help:
	@echo "make         build the program (build/release/bin/harness; ./harness starts it)"
	@echo "make setup   install what is missing (Debian/Ubuntu, as root); elsewhere say what is missing and what to do"
	@echo "make demo    set-up, build, and a sweep of real training steps on 4 ranks of this machine"
	@echo "make test    set-up, build, and all tests"
	@echo "make check   clang-format and clang-tidy over the sources"
	@echo "make asan    build with the address and undefined-behaviour sanitizers and run the tests"
	@echo "make gpu-check   every check that one GPU allows, in under ten minutes (ROWS=\"layouts memcheck\": only these)"
	@echo "make bench   the Google Benchmark programs (the comparison with PyTorch: bench/README.md)"
	@echo "make soak    what takes longer than a test may: 200 killed jobs, 128 ranks"
	@echo "make bundle  the program and the MPI launcher with all they need, as one file for nodes without packages"
	@echo "make clean   remove build/"

setup:
	@scripts/setup.sh

build:
	@scripts/build.sh release

demo: setup build
	@scripts/demo.sh configs/laptop.yaml 4

test: setup build
	@scripts/test.sh release

soak: setup build
	@scripts/soak.sh

gpu-check: build
	@scripts/gpu_check.sh $(ROWS)

bench: setup build
	@scripts/bench.sh

bundle: setup
	@scripts/bundle.sh

check:
	@scripts/setup.sh --dev
	@scripts/build.sh release --configure-only
	@scripts/check.sh

asan: setup
	@scripts/build.sh asan
	@scripts/test.sh asan

clean:
	rm -rf build
