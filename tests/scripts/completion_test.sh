#!/bin/bash
# What scripts/completion offers is what the program's help says. usage: completion_test.sh HARNESS
# The zsh part runs where zsh is installed.
set -u
program=$(realpath "$1")
completion=$(cd "$(dirname "$0")/../../scripts/completion" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
mkdir runs
touch laptop.yaml old.yml monday.h5 notes.txt
failures=0

# $1: shell; $2: the line before the cursor, whose last word is being completed; $3: words that must be offered, all of
# them; $4: words that must not be.
expect() {
  local offered word
  offered=" $("offered_by_$1" "$2" | sort -u | tr '\n' ' ')"
  for word in $3; do
    case $offered in *" $word "*) ;; *) echo "$1: '$2' does not offer '$word', but:$offered"; failures=$((failures + 1)) ;; esac
  done
  for word in $4; do
    case $offered in *" $word "*) echo "$1: '$2' offers '$word'"; failures=$((failures + 1)) ;; esac
  done
}

# The line as bash and zsh see it: words, the last one empty behind a space.
# shellcheck disable=SC2016,SC2317  # expanded by the inner shell; called by name
offered_by_bash() {
  bash -c '
    source "$1/harness.bash"
    read -r -a COMP_WORDS <<< "$2"
    case $2 in *" ") COMP_WORDS+=("") ;; esac
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _harness "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    printf "%s\n" "${COMPREPLY[@]}"' - "$completion" "$program $1"
}

# What zsh offers through is replaced: words and files that fit are printed.
# shellcheck disable=SC2016,SC2317
offered_by_zsh() {
  zsh -f -c '
    fits() { print -rl -- ${(M)@:#${PREFIX}*} }
    compadd() { [[ $1 = -a ]] && fits ${(P)2} || fits $@ }
    _describe() { fits ${${(P)@[-1]}%%:*} }
    _files() { setopt local_options null_glob; if [[ $1 = -g ]]; then fits ${~2} *(/); else fits *; fi }
    words=(${(s: :)2}); [[ $2 = *" " ]] && words+=("")
    CURRENT=$#words PREFIX=$words[-1]
    source $1/_harness' - "$completion" "$program $1"
}

verbs="$("$program" --help | sed -n '/^Subcommands:/,$s/^  \([a-z]*\) .*/\1/p' | tr '\n' ' ')"
[ "$(echo "$verbs" | wc -w)" -ge 8 ] || { echo "the help lists the verbs: $verbs"; exit 1; }
shells=bash
if command -v zsh > /dev/null; then shells="bash zsh"; else echo "zsh is not installed: its completion was not tested"; fi

for shell in $shells; do
  expect "$shell" "" "$verbs" "--help laptop.yaml"
  expect "$shell" "--" "--help --version" "sweep"
  expect "$shell" "s" "sweep show selftest" "plan"
  for verb in $verbs; do
    expect "$shell" "$verb -" "$("$program" "$verb" --help | sed -n 's/^  \(-[^ ]*\).*/\1/p' | tr ',\n' '  ')" ""
  done
  expect "$shell" "sweep " "laptop.yaml old.yml runs" "monday.h5 notes.txt"
  expect "$shell" "sweep laptop.yaml --force " "laptop.yaml" "monday.h5"
  expect "$shell" "plan " "laptop.yaml old.yml monday.h5 runs" "notes.txt"
  expect "$shell" "plan laptop.yaml --best " "" "laptop.yaml monday.h5"
  expect "$shell" "calibrate " "laptop.yaml old.yml runs" "monday.h5 notes.txt"
  expect "$shell" "calibrate --backend " "cpu cuda" "sim"
  expect "$shell" "show " "monday.h5 runs" "laptop.yaml notes.txt"
  expect "$shell" "show monday.h5 " "monday.h5 runs" "laptop.yaml notes.txt"
  expect "$shell" "compare --with " "monday.h5" "laptop.yaml"
  expect "$shell" "show monday.h5 --format " "text md csv json" "html monday.h5"
  expect "$shell" "report --format " "html md" "json"
  expect "$shell" "export --format m" "megatron" "env"
  expect "$shell" "plan laptop.yaml --backend " "cpu cuda sim" "laptop.yaml"
  expect "$shell" "selftest --backend " "cpu cuda" "sim"
  expect "$shell" "sweep laptop.yaml --rounds " "" "laptop.yaml monday.h5 text"
  expect "$shell" "sweep laptop.yaml -o " "notes.txt monday.h5" "--force"
  expect "$shell" "selftest " "operations reference equality performance all" "monday.h5"
done
expect bash "show --format = " "text md csv json" ""  # how bash splits --format=

[ $failures = 0 ] && echo "completion: passed for $shells"
exit $((failures > 0))
