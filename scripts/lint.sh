#!/bin/bash
# Runs clang-format, check_rooms.py, check_statements.py and clang-tidy over every tracked source: `make lint`.
# usage: scripts/lint.sh [--format | --rooms | FILE...]
#   --format   all but clang-tidy
#   --rooms    clang-tidy alone, each room as one file, as preset check builds it: a quarter of the time, for continuous
#              integration. Without fused_attention.cpp, half a minute of somebody else's templates.
#   FILE...    only these files
# clang-tidy takes about seven seconds a source. Without FILEs it therefore skips tests/ and bench/; LINT_ALL=1 includes
# them. Its static analyzer takes four times as long as everything else and is left out; LINT_ANALYZE=1 includes it
# (`make soak` does). It also skips a file whose preprocessed text was clean before (LINT_CACHE, default
# ~/.cache/harness-lint).
set -euo pipefail
cd "$(dirname "$0")/.."
only_format="" preset=release
case ${1:-} in
  --format) only_format=1; shift ;;
  --rooms) preset=check; shift ;;
esac
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files -- '*.h' '*.cpp'); fi
wrong=() checks_rc=0
if [ $preset = release ]; then
  # shellcheck disable=SC2016
  mapfile -t wrong < <(printf '%s\0' "${files[@]}" | xargs -0 -P "${JOBS:-$(nproc)}" -n 1 \
    sh -c 'clang-format --dry-run -Werror "$0" 2> /dev/null || echo "$0"')
  if [ ${#wrong[@]} = 0 ]; then
    echo "lint: ${#files[@]} files are formatted correctly"
  else
    echo "lint: not formatted; run \`clang-format -i ${wrong[*]}\`" >&2
  fi
fi
if [ $# = 0 ] && [ $preset = release ]; then
  python3 scripts/check_rooms.py || checks_rc=1
  python3 scripts/check_statements.py || checks_rc=1
fi
if [ -n "$only_format" ]; then [ ${#wrong[@]} = 0 ] && [ $checks_rc = 0 ]; exit; fi

database=build/$preset/compile_commands.json
[ -e $database ] || { echo "lint: $database is missing; run scripts/build.sh $preset --configure-only" >&2; exit 1; }

# Headers are linted through the sources that include them (HeaderFilterRegex in .clang-tidy), and so are the sources
# that a room's one file includes.
sources=()
if [ $preset = check ]; then
  mapfile -t sources < <(sed -n "s|^ *\"file\": \"$PWD/\(.*\.c[px]*\)\",*|\1|p" $database | grep -v -e /tests/ -e ^tests/ -e /bench/ -e ^bench/ -e /fused_attention.cpp | sort -u)
else
  for file in "${files[@]}"; do
    case $file in *.cpp) ;; *) continue ;; esac
    case $#,${LINT_ALL:-},$file in 0,,tests/* | 0,,bench/*) continue ;; esac
    if grep -qF "\"$PWD/$file\"" $database; then sources+=("$file"); else echo "lint: skipped, not part of the build: $file" >&2; fi
  done
fi
[ ${#sources[@]} -gt 0 ] || { echo "lint: none of these files is a source of the build" >&2; exit 1; }

cache=${LINT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/harness-lint}
mkdir -p "$cache"
includes=$(grep -ohE -- '-(I|isystem) ?[^ "]+' $database | sort -u | tr '\n' ' ')
tidy_options='--extra-arg=-Wno-unknown-warning-option' off='--checks='
[ -n "${LINT_ANALYZE:-}" ] || off+='-clang-analyzer-*,'
[ $preset = release ] || off+='-bugprone-suspicious-include,' # a room's one file includes sources
tidy_options+=" $off"
rules=$( (clang-tidy --version; echo "$tidy_options"; cat .clang-tidy tests/.clang-tidy; echo "$includes" | sed "s|$PWD|.|g") | sha256sum)
export preset cache includes rules tidy_options

tidy() {
  # The key is the preprocessed text. It keeps the comments, because of NOLINT.
  local key
  # shellcheck disable=SC2086
  key=$( (echo "$rules"; "${CXX:-c++}" -std=c++20 -fopenmp -E -C -DHARNESS_HAS_CPU_BACKEND=1 $includes "$1") |
    sed "s|$PWD|.|g" | sha256sum | cut -d' ' -f1)
  if [ -e "$cache/$key" ]; then echo "lint: $1: unchanged since it was clean"; return; fi
  local words
  # The compiler may accept flags that clang-tidy does not know (-march=native); they do not matter here.
  # shellcheck disable=SC2086
  if words=$(clang-tidy --quiet $tidy_options -p build/$preset "$1" 2>&1); then
    touch "$cache/$key"
    echo "lint: $1: clean"
  else
    echo "lint: $1: NOT clean"$'\n'"$words"
    return 1
  fi
}
export -f tidy
# Longest first, so that no core idles at the end.
# shellcheck disable=SC2011
if ! ls -S "${sources[@]}" | xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'tidy {}'; then
  echo "lint: clang-tidy reported the problems above" >&2
  exit 1
fi
find "$cache" -type f -mtime +30 -delete
echo "lint: ${#sources[@]} sources pass clang-tidy"
[ ${#wrong[@]} = 0 ] && [ $checks_rc = 0 ]
