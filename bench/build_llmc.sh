#!/bin/bash
# Builds llm.c's GPU training program as its Makefile does, with cuDNN's attention, in bf16, for one GPU without NCCL and
# MPI, and writes a file of random tokens in its format. The checkout itself is not changed; in the copy, no memory is
# managed memory.
#
# usage: bench/build_llmc.sh [-o DIR] [--arch 90] CHECKOUT
#   CHECKOUT    git clone https://github.com/karpathy/llm.c
#   -o DIR      where to build (default build/llm.c): train_gpt2cu, tokens.bin, and `about`, one line on how it was built
#   --arch 90   the GPU's compute capability without the dot (default: what nvidia-smi says)
# environment, all optional:
#   CUDA_HOME                         the toolkit, if nvcc is not in PATH or /usr/local/cuda
#   CUDNN_HOME                        the folder of include/cudnn.h, if neither the toolkit nor pip's packages have it
#   CUDNN_FRONTEND_HOME               the folder of include/cudnn_frontend.h (default .deps/cudnn-frontend: `make setup`)
#   PYTHON                            the python whose packages are searched
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
say() { echo "build_llmc: $*" >&2; }
fail() { say "$@"; exit 1; }
out=$root/build/llm.c arch="" checkout=""
while [ $# -gt 0 ]; do
  case $1 in
    -o) out=$2; shift 2 ;;
    --arch) arch=$2; shift 2 ;;
    -*) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2; exit 1 ;;
    *) checkout=$1; shift ;;
  esac
done
[ -n "$checkout" ] || fail "name the checkout of llm.c: bench/build_llmc.sh path/to/llm.c"
[ -e "$checkout/train_gpt2.cu" ] || fail "$checkout has no train_gpt2.cu; expected a checkout of github.com/karpathy/llm.c"

# ---- what it needs -----------------------------------------------------------------------------------------------------
nvcc=$(command -v nvcc || true)
for home in "${CUDA_HOME:-}" /usr/local/cuda; do
  [ -n "$nvcc" ] || [ ! -x "$home/bin/nvcc" ] || nvcc=$home/bin/nvcc
done
[ -n "$nvcc" ] || fail "nvcc was not found in PATH, CUDA_HOME or /usr/local/cuda"
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
if [ -z "$arch" ]; then
  arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | head -n 1 | tr -d .) || true
  [ -n "$arch" ] || fail "nvidia-smi names no GPU; say which with --arch (90 for an H100 or H200)"
fi

# pip's packages have headers and libraries, but not the names that a linker looks for.
packages=$("${PYTHON:-python3}" -c '
import glob, os, sys
for folder in sys.path:
    print("\n".join(sorted(glob.glob(os.path.join(folder, "nvidia", "*")))))' 2> /dev/null) || true
first() { local f; for f in "$@"; do [ -e "$f" ] && { echo "$f"; return 0; }; done; return 1; }
candidates() {  # PATH...: in the toolkit, in cuDNN's folder, in pip's packages, in the system
  local folder path
  for folder in "$cuda" "${CUDNN_HOME:-/nowhere}" $packages /usr /usr/local; do
    for path in "$@"; do echo "$folder/$path"; done
  done
}
mapfile -t paths < <(candidates include/cudnn.h include/x86_64-linux-gnu/cudnn.h)
cudnn=$(first "${paths[@]}") || fail "cudnn.h was not found; install nvidia-cudnn-cu12 or -cu13 by pip, or set CUDNN_HOME"
frontend=$(first "${CUDNN_FRONTEND_HOME:-/nowhere}/include/cudnn_frontend.h" \
  "$root/.deps/cudnn-frontend/include/cudnn_frontend.h" /usr/include/cudnn_frontend.h) ||
  fail "cudnn_frontend.h was not found; run \`make setup\`, or set CUDNN_FRONTEND_HOME"

mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -rf "${out:?}/source" "${out:?}/lib"
mkdir -p "$out/source/cudnn-frontend" "$out/lib"
for library in cublas cublasLt cudnn nvrtc nvidia-ml; do
  mapfile -t paths < <(candidates lib64/lib$library.so lib/lib$library.so lib/x86_64-linux-gnu/lib$library.so \
    lib64/stubs/lib$library.so lib/lib$library.so.{13,12,9} lib/x86_64-linux-gnu/lib$library.so.{13,12,9,1})
  if found=$(first "${paths[@]}"); then
    ln -s "$found" "$out/lib/lib$library.so"
  elif [ $library = nvidia-ml ]; then
    # A toolkit of pip's packages has no NVML, neither header nor stub. llm.c does without it, but its Makefile links it.
    cc -shared -x c /dev/null -Wl,-soname,libnvidia-ml.so.1 -o "$out/lib/libnvidia-ml.so"
  else
    fail "lib$library.so was not found in $cuda, pip's packages or the system"
  fi
done

# ---- the program -------------------------------------------------------------------------------------------------------
cp -r "$checkout/Makefile" "$checkout/train_gpt2.cu" "$checkout/llmc" "$out/source/"
ln -s "$(dirname "$frontend")" "$out/source/cudnn-frontend/include"  # the only place where its Makefile looks
# When the GPU's memory is full, llm.c goes on in managed memory. Such a step is no yardstick, and it can hang the GPU. The
# call that it needs for that has other arguments since CUDA 13, too. The copy ends with "out of memory" instead.
{ grep -rlE 'cudaMallocManaged\(|cudaMemAdvise\(' "$out/source/train_gpt2.cu" "$out/source/llmc" || true; } |
  while read -r changed; do
    sed -i -e 's/cudaMallocManaged(out, bytes)/cudaMalloc(out, bytes)/' -e '/cudaMemAdvise(\*out, /d' "$changed"
  done
say "building for sm_$arch; this takes minutes …"
# HOME: a cudnn-frontend that lies there would come first. NVCC_LDLIBS: newer ones than its Makefile knows need NVRTC.
if ! HOME=$out PATH=$(dirname "$nvcc"):$PATH CPATH=$(dirname "$cudnn")${CPATH:+:$CPATH} \
  LIBRARY_PATH=$out/lib${LIBRARY_PATH:+:$LIBRARY_PATH} make -C "$out/source" train_gpt2cu USE_CUDNN=1 NO_MULTI_GPU=1 \
  NO_USE_MPI=1 NVCC_LDLIBS=-lnvrtc GPU_COMPUTE_CAPABILITY="$arch" > "$out/build.log" 2>&1; then
  tail -n 20 "$out/build.log" >&2
  fail "llm.c does not build; the whole log is $out/build.log"
fi
cp "$out/source/train_gpt2cu" "$out/train_gpt2cu"

commit=$(git -C "$checkout" describe --always --dirty --abbrev=10 --exclude '*' 2> /dev/null || echo unknown)
release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
header() { sed -n "s/^#define $1 \([0-9]*\).*/\1/p" "$(dirname "$cudnn")/cudnn_version.h" 2> /dev/null; }
echo "commit $commit, CUDA $release, cuDNN $(header CUDNN_MAJOR).$(header CUDNN_MINOR).$(header CUDNN_PATCHLEVEL), sm_$arch" \
  > "$out/about"

# ---- tokens ------------------------------------------------------------------------------------------------------------
# A header of 256 32-bit words (magic number, version, count), then 16-bit tokens, all little-endian. Bytes below 196 make
# tokens below 50257, the vocabulary.
word() { local n=$1; for _ in 1 2 3 4; do printf '%b' "\\0$(printf %o $((n & 255)))"; n=$((n >> 8)); done; }
tokens=$((1 << 22))
(
  word 20240520; word 1; word $tokens
  head -c $((253 * 4)) /dev/zero
  set +o pipefail  # head ends tr
  LC_ALL=C tr -d '\304-\377' < /dev/urandom | head -c $((2 * tokens))
) > "$out/tokens.bin"
say "$out/train_gpt2cu: $(cat "$out/about")"
