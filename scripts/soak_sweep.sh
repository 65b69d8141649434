# shellcheck shell=bash disable=SC2034,SC2154
# Sourced by the soak scripts: sweeps of small configurations in a folder that is removed.
. scripts/mpi_root.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run() { # command… ; exit code 4: the control moved, possibly by chance, and the table says so
  local code=0
  "$@" > "$folder/out" 2> "$folder/log" || code=$?
  [ $code = 0 ] || [ $code = 4 ] || { cat "$folder/log" >&2; exit 1; }
}
# shellcheck disable=SC2086
on_ranks() { run mpirun $oversubscribe -np "$1" ./harness "${@:2}"; } # number, verb, options…
# A line per case: these columns, "|" between them, since names of cases have commas.
columns() { # file, column…
  { ./harness show "$1" --format csv || [ $? = 4 ]; } | python3 -c 'import csv, sys
for row in csv.DictReader(sys.stdin):
    print("|".join(row[key] for key in sys.argv[1:]))' "${@:2}"
}
cat > "$folder/training.yaml" << 'YAML'
name: training
backend: cpu
model: {layers: 2, hidden: 128, heads: 2, vocab: 512, sequence: 128}
baseline: {precision: fp32, global_batch_size: 4, micro_batch_size: 2, threads: 1}
sweep: {env: [{AA: 1}, {AA: 2}, {AA: 3}, {AA: 4}, {AA: 5}, {AA: 6}]}
YAML
cat > "$folder/grid.yaml" << 'YAML'
name: grid
workload: collective
backend: cpu
baseline: {collective: all_reduce, message_size: 65536 B, precision: fp32, repetitions: 20}
sweep: {message_size: [65524 B, 65528 B, 65540 B, 65544 B], env: [{AA: 1}]}
YAML
