#!/bin/sh
# Fetches cuobjdump and nvdisasm (PyPI wheels nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm) to .deps/cuda-binaries, for
# scripts/check_machine_code.py. Does nothing without the CUDA Toolkit, or where both are there already.
set -eu
cd "$(dirname "$0")/.."
. scripts/fetch_wheel.sh

bin=${CUDA_HOME:-/usr/local/cuda}/bin
command -v nvcc > /dev/null || [ -x "$bin/nvcc" ] || exit 0
for folder in .deps/cuda-binaries "$bin"; do
  if [ -x "$folder/cuobjdump" ] && [ -x "$folder/nvdisasm" ]; then exit 0; fi
done
folder=.deps/cuda-binaries.part
rm -rf "$folder"
trap 'rm -rf "$folder"' EXIT
version=13.5.37  # reads the machine code of every earlier toolkit
fetch_wheel "$folder" nvidia-cuda-cuobjdump $version 38780fee50863252a0b8926357faa91615ca1c8346490563f33a06100cd73f58 \
  --platform manylinux_2_17_x86_64
fetch_wheel "$folder" nvidia-cuda-nvdisasm $version d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca \
  --platform manylinux_2_17_x86_64
mkdir -p .deps/cuda-binaries
find "$folder" -path '*/bin/*' -type f -exec mv {} .deps/cuda-binaries/ \;
chmod +x .deps/cuda-binaries/*
