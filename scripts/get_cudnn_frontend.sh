#!/bin/sh
# Fetches the headers of cudnn-frontend (MIT licence; NVIDIA publishes them as the PyPI wheel nvidia-cudnn-frontend) to
# .deps/, where CMake looks for them. Does nothing without the CUDA Toolkit, or if there are such headers already. Never
# fails: without the headers, the cuda backend computes attention unfused and says so.
set -eu
cd "$(dirname "$0")/.."
version=1.32.0
# Of the wheel for CPython 3.11 on x86_64. The headers are the same in all wheels.
sha256=c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0

nvcc=$(command -v nvcc || ls "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" 2> /dev/null || true)
[ -n "$nvcc" ] || exit 0
for folder in .deps/cudnn-frontend/include "${CUDNN_FRONTEND_HOME:-/nowhere}/include" /usr/include /usr/local/include; do
  [ -e "$folder/cudnn_frontend.h" ] && exit 0
done
say() { echo "setup: cudnn-frontend: $*" >&2; }
python=$(command -v python3 || true)
if [ -z "$python" ] || ! "$python" -m pip --version > /dev/null 2>&1; then
  say "fetching the headers needs python3 with pip; without them, attention runs unfused. To provide them yourself,"
  say "unzip the wheel nvidia-cudnn-frontend and set CUDNN_FRONTEND_HOME to the folder of include/cudnn_frontend.h"
  exit 0
fi
folder=.deps/cudnn-frontend.part
rm -rf "$folder"
mkdir -p "$folder"
trap 'rm -rf "$folder"' EXIT
echo "setup: fetching cudnn-frontend $version (headers)"
if ! "$python" -m pip download -q --no-deps --only-binary :all: --python-version 3.11 --implementation cp --abi cp311 \
  --platform manylinux_2_28_x86_64 -d "$folder" "nvidia-cudnn-frontend==$version" 2> "$folder/log"; then
  say "the headers could not be fetched; attention runs unfused ($(tail -1 "$folder/log"))"
  exit 0
fi
wheel=$(ls "$folder"/*.whl)
if [ "$(sha256sum "$wheel" | cut -d' ' -f1)" != "$sha256" ]; then
  say "the fetched file has a wrong checksum and is not used; attention runs unfused"
  exit 0
fi
"$python" -m zipfile -e "$wheel" "$folder/wheel"
mkdir -p .deps/cudnn-frontend
rm -rf .deps/cudnn-frontend/include
mv "$folder/wheel/include" .deps/cudnn-frontend/include
rm -f build/*/.configured
