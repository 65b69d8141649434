#!/bin/sh
# Fetches the headers of cudnn-frontend (MIT licence; NVIDIA publishes them as the PyPI wheel nvidia-cudnn-frontend) to
# .deps/, where CMake looks for them. Does nothing without the CUDA Toolkit, or if there are such headers already. Never
# fails: without the headers, the cuda backend computes attention unfused and says so.
set -eu
cd "$(dirname "$0")/.."
. scripts/fetch_wheel.sh

nvcc=$(command -v nvcc || ls "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" 2> /dev/null || true)
[ -n "$nvcc" ] || exit 0
for folder in .deps/cudnn-frontend/include "${CUDNN_FRONTEND_HOME:-/nowhere}/include" /usr/include /usr/local/include; do
  [ -e "$folder/cudnn_frontend.h" ] && exit 0
done
folder=.deps/cudnn-frontend.part
rm -rf "$folder"
trap 'rm -rf "$folder"' EXIT
# The wheel for CPython 3.11 on x86_64; the headers are the same in all wheels.
if ! fetch_wheel "$folder" nvidia-cudnn-frontend 1.32.0 \
  c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0 \
  --python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_28_x86_64; then
  echo "setup: without the headers of cudnn-frontend, attention runs unfused. To provide them yourself, unzip the wheel" >&2
  echo "setup: nvidia-cudnn-frontend and set CUDNN_FRONTEND_HOME to the folder of include/cudnn_frontend.h" >&2
  exit 0
fi
mkdir -p .deps/cudnn-frontend
rm -rf .deps/cudnn-frontend/include
mv "$folder/nvidia-cudnn-frontend/include" .deps/cudnn-frontend/include
rm -f build/*/.configured
