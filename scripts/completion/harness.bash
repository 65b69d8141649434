# Completion for bash: `source scripts/completion/harness.bash`, for instance in ~/.bashrc. Verbs, options and their
# values are those that `harness --help` prints, so they are always those of the program that is being called.

# What the help text on stdin says. $1: "verbs"; "options"; "takes" OPTION: whether it needs a value; "values" NAME: the
# values that an option or argument may have, where the help lists them.
_harness_help() {
  awk -v what="$1" -v name="${2:-}" '
    /^Subcommands:/ {verbs = 1}
    verbs && /^  [a-z]/ && what == "verbs" {print $1}
    !/^  [-a-z]/ {next}
    {
      count = split($1, names, ",")
      for (i = 1; i <= count; ++i) {
        if (what == "options" && names[i] ~ /^-/) print names[i]
        if (names[i] != name) continue
        if (what == "takes" && $2 ~ /^[A-Z][A-Z]/) print "yes"
        if (what == "values" && match($2, /\{[^}]*\}/)) {
          values = substr($2, RSTART + 1, RLENGTH - 2)
          gsub(",", "\n", values)
          print values
        }
      }
    }'
}

# Files whose names match one of these patterns, and folders.
_harness_files() {
  local pattern
  compopt -o filenames 2> /dev/null
  mapfile -t COMPREPLY < <(for pattern; do compgen -f -X "!$pattern" -- "$current"; done; compgen -d -- "$current")
}

_harness_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}

_harness() {
  local program=${1/#\~/$HOME} current=$2 previous=$3 verb="" word help values
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in -*) ;; *) verb=$word; break ;; esac
  done
  # shellcheck disable=SC2086  # no verb, no word
  help=$("$program" $verb --help 2> /dev/null) || return 0

  # bash breaks --format=md into three words.
  if [ "$current" = = ]; then current=""; previous="$previous="; fi
  if [ "$previous" = = ]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi
  previous=${previous%=}

  if [ "$(_harness_help takes "$previous" <<< "$help")" = yes ]; then
    values=$(_harness_help values "$previous" <<< "$help")
    case $previous in
      --backend | --oracle)
        case $verb in sweep | plan) _harness_words "cpu cuda sim" ;; *) _harness_words "cpu cuda" ;; esac ;;
      --like | --with) _harness_files '*.h5' ;;
      -o | --output | --json | --compare | --reference | --against) _harness_files '*' ;;
      *) _harness_words "$values" ;;
    esac
  elif [[ $current == -* ]]; then
    _harness_words "$(_harness_help options <<< "$help")"
  else
    case $verb in
      "") _harness_words "$(_harness_help verbs <<< "$help")" ;;
      sweep | calibrate) _harness_files '*.y*ml' ;;
      plan) _harness_files '*.y*ml' '*.h5' ;;
      selftest) _harness_words "$(_harness_help values suites <<< "$help")" ;;
      *) _harness_files '*.h5' ;;
    esac
  fi
}

complete -F _harness harness
