#!/bin/bash
# clang-format and clang-tidy over every tracked source. A file whose preprocessed text was found clean before is not
# looked at again (CHECK_CACHE, default ~/.cache/harness-check). usage: scripts/check.sh [--format: no clang-tidy] [files...: only these]
# clang-tidy needs some ten seconds a source, so without files it looks at the product and leaves tests/ and bench/ to
# those who change them: CHECK_ALL=1 scripts/check.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
only_format=""
if [ "${1:-}" = --format ]; then only_format=1; shift; fi
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files -- '*.h' '*.cpp'); fi
wrong=()
for file in "${files[@]}"; do
  clang-format --dry-run -Werror "$file" 2> /dev/null || wrong+=("$file")
done
if [ ${#wrong[@]} = 0 ]; then
  echo "check: format of ${#files[@]} files is right"
else
  echo "check: wrong format, \`clang-format -i ${wrong[*]}\` repairs it" >&2
fi

if [ -n "$only_format" ]; then [ ${#wrong[@]} = 0 ]; exit; fi

database=build/release/compile_commands.json
[ -e $database ] || { echo "check: no $database: scripts/build.sh release --configure-only" >&2; exit 1; }

# Headers are checked through the sources that include them (HeaderFilterRegex in .clang-tidy).
sources=()
for file in "${files[@]}"; do
  case $file in *.cpp) ;; *) continue ;; esac
  case $#,${CHECK_ALL:-},$file in 0,,tests/* | 0,,bench/*) continue ;; esac
  if grep -qF "\"$PWD/$file\"" $database; then sources+=("$file"); else echo "check: not built, not checked: $file" >&2; fi
done
[ ${#sources[@]} -gt 0 ] || { echo "check: no source to check" >&2; exit 1; }

cache=${CHECK_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/harness-check}
mkdir -p "$cache"
includes=$(grep -ohE -- '-(I|isystem) ?[^ "]+' $database | sort -u | tr '\n' ' ')
rules=$( (clang-tidy --version; cat .clang-tidy tests/.clang-tidy; echo "$includes" | sed "s|$PWD|.|g") | sha256sum)
export database cache includes rules

tidy() {
  # The text after preprocessing, comments kept (NOLINT), decides whether this was seen before.
  local key
  # shellcheck disable=SC2086
  key=$( (echo "$rules"; "${CXX:-c++}" -std=c++20 -fopenmp -E -C -DHARNESS_HAS_CPU_BACKEND=1 $includes "$1") |
    sed "s|$PWD|.|g" | sha256sum | cut -d' ' -f1)
  if [ -e "$cache/$key" ]; then echo "check: $1: unchanged since it was clean"; return; fi
  local words
  # -march=native and the like may be newer than clang-tidy; they change nothing it looks at.
  if words=$(clang-tidy --quiet -p build/release "$1" 2>&1); then
    touch "$cache/$key"
    echo "check: $1: clean"
  else
    echo "check: $1: NOT clean"$'\n'"$words"
    return 1
  fi
}
export -f tidy
# The longest first, so that no core waits at the end.
# shellcheck disable=SC2011
if ! ls -S "${sources[@]}" | xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'tidy {}'; then
  echo "check: clang-tidy found the above" >&2
  exit 1
fi
find "$cache" -type f -mtime +30 -delete
echo "check: clang-tidy is content with ${#sources[@]} sources"
[ ${#wrong[@]} = 0 ]
