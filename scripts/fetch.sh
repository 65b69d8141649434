#!/bin/sh
# Fetches NVIDIA's PyPI wheels to .deps, if the CUDA Toolkit is present and the part is missing:
#   cudnn-frontend   the headers (MIT licence) that fused attention needs. Never fails: without them, the cuda backend
#                    computes attention unfused and says so
#   cuda-binaries    cuobjdump and nvdisasm, for scripts/check_machine_code.py
# usage: scripts/fetch.sh cudnn-frontend | cuda-binaries
set -eu
cd "$(dirname "$0")/.."
bin=${CUDA_HOME:-/usr/local/cuda}/bin
command -v nvcc > /dev/null || [ -x "$bin/nvcc" ] || exit 0
what=$1 part=.deps/$1.part
rm -rf "$part"
trap 'rm -rf "$part"' EXIT

# Downloads one wheel, verifies its checksum and unpacks it. On failure prints the reason and returns 1.
wheel() {  # NAME VERSION SHA256 [pip's platform options]
  name=$1 version=$2 sum=$3
  shift 3
  mkdir -p "$part"
  echo "setup: fetching $name $version"
  if ! python3 -m pip download -q --no-deps --only-binary :all: "$@" -d "$part" "$name==$version" 2> "$part/log"; then
    echo "setup: $name could not be fetched; python3 with pip says: $(tail -1 "$part/log")" >&2
    return 1
  fi
  file=$(ls "$part/$(echo "$name" | tr - _)"-*.whl)
  if [ "$(sha256sum "$file" | cut -d' ' -f1)" != "$sum" ]; then
    echo "setup: the fetched $name has a wrong checksum and is not used" >&2
    return 1
  fi
  python3 -m zipfile -e "$file" "$part"
}

case $what in
  cudnn-frontend)
    for folder in .deps/cudnn-frontend/include "${CUDNN_FRONTEND_HOME:-/nowhere}/include" /usr/include /usr/local/include; do
      [ ! -e "$folder/cudnn_frontend.h" ] || exit 0
    done
    # The wheel for CPython 3.11 on x86_64; the headers are the same in all wheels.
    if ! wheel nvidia-cudnn-frontend 1.32.0 c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0 \
      --python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_28_x86_64; then
      echo "setup: without the headers of cudnn-frontend, attention runs unfused. To provide them yourself, unzip the wheel" >&2
      echo "setup: nvidia-cudnn-frontend and set CUDNN_FRONTEND_HOME to the folder of include/cudnn_frontend.h" >&2
      exit 0
    fi
    rm -rf .deps/cudnn-frontend
    mkdir -p .deps/cudnn-frontend
    mv "$part/include" .deps/cudnn-frontend/include
    rm -f build/*/.configured
    ;;
  cuda-binaries)
    for folder in .deps/cuda-binaries "$bin"; do
      if [ -x "$folder/cuobjdump" ] && [ -x "$folder/nvdisasm" ]; then exit 0; fi
    done
    version=13.5.37  # reads the machine code of every earlier toolkit
    wheel nvidia-cuda-cuobjdump $version 38780fee50863252a0b8926357faa91615ca1c8346490563f33a06100cd73f58 \
      --platform manylinux_2_17_x86_64
    wheel nvidia-cuda-nvdisasm $version d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca \
      --platform manylinux_2_17_x86_64
    mkdir -p .deps/cuda-binaries
    find "$part" -path '*/bin/*' -type f -exec mv {} .deps/cuda-binaries/ \;
    chmod +x .deps/cuda-binaries/*
    ;;
esac
