#!/bin/sh
# Fetches cudnn-frontend's headers (MIT licence; NVIDIA publishes them as the PyPI wheel nvidia-cudnn-frontend) into
# .deps/, where CMake looks. Only where the CUDA Toolkit is and no such headers are yet. Never fatal: without them the
# cuda backend computes attention unfused and says so.
set -eu
cd "$(dirname "$0")/.."
version=1.32.0
sha256=c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0  # of the wheel for CPython 3.11 on x86_64; the headers are the same in all

nvcc=$(command -v nvcc || ls "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" 2> /dev/null || true)
[ -n "$nvcc" ] || exit 0
for folder in .deps/cudnn-frontend/include "${CUDNN_FRONTEND_HOME:-/nowhere}/include" /usr/include /usr/local/include; do
  [ -e "$folder/cudnn_frontend.h" ] && exit 0
done
say() { echo "setup: cudnn-frontend: $*" >&2; }
python=$(command -v python3 || true)
if [ -z "$python" ] || ! "$python" -m pip --version > /dev/null 2>&1; then
  say "no python3 with pip to fetch its headers with: attention will run unfused. By hand: unpack the wheel"
  say "nvidia-cudnn-frontend (a zip file) and give CUDNN_FRONTEND_HOME=folder that holds include/cudnn_frontend.h"
  exit 0
fi
folder=.deps/cudnn-frontend.part
rm -rf "$folder"
mkdir -p "$folder"
trap 'rm -rf "$folder"' EXIT
echo "setup: fetching cudnn-frontend $version (headers)"
if ! "$python" -m pip download -q --no-deps --only-binary :all: --python-version 3.11 --implementation cp --abi cp311 \
  --platform manylinux_2_28_x86_64 -d "$folder" "nvidia-cudnn-frontend==$version" 2> "$folder/log"; then
  say "could not be fetched: attention will run unfused ($(tail -1 "$folder/log"))"
  exit 0
fi
wheel=$(ls "$folder"/*.whl)
if [ "$(sha256sum "$wheel" | cut -d' ' -f1)" != "$sha256" ]; then
  say "what was fetched is not what was expected, and not used: attention will run unfused"
  exit 0
fi
"$python" -m zipfile -e "$wheel" "$folder/wheel"
mkdir -p .deps/cudnn-frontend
rm -rf .deps/cudnn-frontend/include
mv "$folder/wheel/include" .deps/cudnn-frontend/include
rm -f build/*/.configured
