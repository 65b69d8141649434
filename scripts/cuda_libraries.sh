#!/bin/sh
# Prints the folders, separated by colons, of the libraries that MODULE needs and the loader does not find by itself,
# and of CUPTI, which is loaded by name on demand. Append them to LD_LIBRARY_PATH. Searches pip's nvidia-* packages,
# which PyTorch installs (for the python in PYTHON, else python3), then CUDA_HOME and /usr/local/cuda. Prints nothing if
# nothing is missing. usage: scripts/cuda_libraries.sh MODULE
set -u
module=$1 found=""
[ -e "$module" ] || exit 0

with_found() { echo "${LD_LIBRARY_PATH:-}${LD_LIBRARY_PATH:+${found:+:}}$found"; }
cupti_is_there() {
  ldconfig -p 2> /dev/null | grep -q 'libcupti\.so' && return 0
  for folder in $(with_found | tr ':' ' ') "${CUDA_HOME:-/usr/local/cuda}/extras/CUPTI/lib64"; do
    for file in "$folder"/libcupti.so*; do [ -e "$file" ] && return 0; done
  done
  return 1
}
missing() {  # beginnings of file names
  LD_LIBRARY_PATH=$(with_found) ldd "$module" 2> /dev/null | awk '/=> not found/ {print $1}' | sort -u
  cupti_is_there || echo libcupti.so
}
candidates() {
  "${PYTHON:-python3}" -c '
import glob, os, sys
for folder in sys.path:
    print("\n".join(sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib")))))' 2> /dev/null
  for home in "${CUDA_HOME:-}" /usr/local/cuda; do
    [ -z "$home" ] || printf '%s\n' "$home/lib64" "$home/lib" "$home/extras/CUPTI/lib64"
  done
}
has_one_of() {  # FOLDER NAME...
  folder=$1; shift
  for name in "$@"; do ls "$folder/$name"* > /dev/null 2>&1 && return 0; done
  return 1
}

# A library that was found can need others in turn.
for _ in 1 2 3; do
  while read -r candidate; do
    # shellcheck disable=SC2046
    if has_one_of "$candidate" $(missing); then found=$found${found:+:}$candidate; fi
  done << END
$(candidates)
END
done
[ -z "$found" ] || echo "$found"
