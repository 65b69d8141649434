#!/bin/bash
# Runs clang-format, check_rooms.py and clang-tidy over the product and its tests: `make lint`.
# usage: scripts/lint.sh [--format | --tidy]
#   --format   all but clang-tidy
#   --tidy     clang-tidy alone
# clang-tidy reads each room as the one file that preset check compiles, without fused_attention.cpp (half a minute of
# third-party templates) and without tests. Its static analyzer takes four times as long as everything else, and three
# checks take a third of the rest, most of it in libraries' headers: LINT_ANALYZE=1 includes all (`make soak` does). A
# room whose preprocessed text was clean before is skipped (LINT_CACHE, default ~/.cache/harness-lint).
set -euo pipefail
cd "$(dirname "$0")/.."

format() {
  local files wrong rc=0
  clang-format --version > /dev/null || return 1
  mapfile -t files < <(git ls-files -- '*.h' '*.cpp')
  # shellcheck disable=SC2016
  mapfile -t wrong < <(printf '%s\0' "${files[@]}" | xargs -0 -P "${JOBS:-$(nproc)}" -n 16 \
    clang-format --dry-run -Werror 2>&1 | sed -n 's/^\([^:]*\):.*-Wclang-format-violations.*/\1/p' | sort -u)
  if [ ${#wrong[@]} = 0 ]; then
    echo "lint: ${#files[@]} files are formatted correctly"
  else
    echo "lint: not formatted; run \`clang-format -i ${wrong[*]}\`" >&2
    rc=1
  fi
  python3 scripts/check_rooms.py || rc=1
  return $rc
}

tidy_room() {
  # The key is the preprocessed text. It keeps the comments, because of NOLINT.
  local key words name=${1#"$PWD"/build/check/}
  # shellcheck disable=SC2086
  key=$( (echo "$rules"; "${CXX:-c++}" -std=c++20 -fopenmp -E -C -DHARNESS_HAS_CPU_BACKEND=1 $includes "$1") |
    sed "s|$PWD|.|g" | sha256sum | cut -d' ' -f1)
  if [ -e "$cache/$key" ]; then echo "lint: $name: unchanged since it was clean"; return; fi
  # The compiler may accept flags that clang-tidy does not know (-march=native); they do not matter here.
  # shellcheck disable=SC2086
  if words=$(clang-tidy --quiet $tidy_options -p build/check "$1" 2>&1); then
    touch "$cache/$key"
    echo "lint: $name: clean"
  else
    echo "lint: $name: NOT clean"$'\n'"$words"
    return 1
  fi
}
export -f tidy_room

tidy() {
  local database=build/check/compile_commands.json rooms slow
  [ -e $database ] || { echo "lint: $database is missing; run scripts/build.sh check --configure-only" >&2; return 1; }
  mapfile -t rooms < <(sed -n "s|^ *\"file\": \"\($PWD/.*\.c[px]*\)\",*|\1|p" $database |
    grep -v -e "$PWD/tests/" -e /check/tests/ -e "$PWD/bench/" -e /check/bench/ -e /fused_attention.cpp | sort -u)
  cache=${LINT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/harness-lint}
  mkdir -p "$cache"
  includes=$(grep -ohE -- '-(I|isystem) ?[^ "]+' $database | sort -u | tr '\n' ' ')
  tidy_options='--extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument'
  tidy_options+=' --checks=-bugprone-suspicious-include' # a room includes sources
  slow=',-clang-analyzer-*,-performance-unnecessary-value-param,-misc-unused-using-decls,-bugprone-infinite-loop'
  [ -n "${LINT_ANALYZE:-}" ] || tidy_options+=$slow
  rules=$( (clang-tidy --version; echo "$tidy_options"; cat .clang-tidy; echo "$includes" | sed "s|$PWD|.|g") | sha256sum)
  export cache includes rules tidy_options
  # Longest first, so that no core idles at the end.
  # shellcheck disable=SC2011
  if ! ls -S "${rooms[@]}" | xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'tidy_room {}'; then
    echo "lint: clang-tidy reported the problems above" >&2
    return 1
  fi
  find "$cache" -type f -mtime +30 -delete
  echo "lint: ${#rooms[@]} rooms pass clang-tidy"
}

rc=0
[ "${1:-}" = --tidy ] || format || rc=1
[ "${1:-}" = --format ] || tidy || rc=1
exit $rc
