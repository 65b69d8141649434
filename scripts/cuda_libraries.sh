#!/bin/sh
# Prints the folders, with colons between, of the libraries that MODULE needs and the loader does not find by itself, and
# of CUPTI, which is loaded by its name when it is needed. Append them to LD_LIBRARY_PATH. Where it looks: the packages
# nvidia-* of pip, which PyTorch brings (of the python in PYTHON, else python3), then CUDA_HOME and /usr/local/cuda.
# It prints nothing if nothing is missing. usage: scripts/cuda_libraries.sh MODULE
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
missing() {  # file names; CUPTI's is a pattern
  LD_LIBRARY_PATH=$(with_found) ldd "$module" 2> /dev/null | awk '/=> not found/ {print $1}' | sort -u
  cupti_is_there || echo 'libcupti.so.*'
}
candidates() {
  "${PYTHON:-python3}" -c '
import glob, os, sys
for folder in sys.path:
    print("\n".join(sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib")))))' 2> /dev/null
  for home in "${CUDA_HOME:-}" /usr/local/cuda; do
    if [ -n "$home" ]; then printf '%s\n' "$home/lib64" "$home/lib" "$home/extras/CUPTI/lib64"; fi
  done
}
add_folders_with() {  # PATTERN...: to `found`
  while read -r folder; do
    case ":$found:" in *":$folder:"*) continue ;; esac
    for pattern in "$@"; do
      for file in "$folder"/$pattern; do
        if [ -e "$file" ]; then found=$found${found:+:}$folder; continue 3; fi
      done
    done
  done << END
$all
END
}

set -f  # the pattern of CUPTI stays one until folders are searched
wanted=$(set +f; missing)
[ -n "$wanted" ] || exit 0
all=$(set +f; candidates)
# A library that is found can miss others in turn.
for _ in 1 2 3; do
  before=$found
  # shellcheck disable=SC2086
  set -- $wanted
  set +f
  add_folders_with "$@"
  set -f
  wanted=$(set +f; missing)
  if [ "$found" = "$before" ] || [ -z "$wanted" ]; then break; fi
done
echo "$found"
