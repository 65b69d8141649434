#!/bin/bash
# What scripts/deploy/slurm.sbatch does about each way in which a sweep can end. Slurm's commands and the program are
# stand-ins: `srun` runs what the test says in $SWEEP and leaves a file "STATE BLOCKS".
set -u
script=$(cd "$(dirname "$0")/../../scripts/deploy" && pwd)/slurm.sbatch
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
mkdir bin results
failures=0

stand_in() { printf '#!/bin/bash\n%s\n' "$2" > "$1"; chmod +x "$1"; }
# shellcheck disable=SC2016  # the stand-ins expand it
{
  stand_in bin/srun 'echo "srun $*" >> calls; echo $$ > step; echo "$SLURM_JOB_END_TIME" > end; eval "$SWEEP"'
  stand_in bin/squeue 'echo 2026-01-02T03:04:05'
  stand_in bin/scontrol 'echo "scontrol $*" >> calls; exit "${REQUEUE_RC:-0}"'
  # Not SIGINT: bash cannot trap in a background command what it ignores there; the program can.
  stand_in bin/scancel 'echo "scancel $*" >> calls; kill -TERM "$(cat step)"'
  stand_in bin/pkill 'echo "pkill $*" >> calls; exec /usr/bin/pkill -TERM -P "$3"'
  stand_in bin/sleep '[ "$1" = 60 ] || exec /bin/sleep "$@"'  # the script is not ended by a real requeue
  stand_in harness 'read -r state blocks < "$2" && [ "$state" ] || exit 1
    printf "{\n  \"partial\": %s,\n    {\n      \"blocks\": %s,\n      \"blocks\": 1,\n" "$state" "$blocks"'
}
export PATH=$folder/bin:$PATH SLURM_SUBMIT_DIR=$folder SLURM_JOB_ID=7 SLURM_JOB_NAME=h
unset SLURM_JOB_END_TIME HARNESS_FILE HARNESS_LAUNCH
file=results/h-7.h5

# $1: what this is; $2: the file before, "" for none; $3: what the sweep does; $4: exit code; $5: requeued or not.
expect() {
  rm -f calls "$file"
  [ -z "$2" ] || echo "$2" > "$file"
  SWEEP=$3 timeout 30 bash "$script" config.yaml --rounds 4 > log 2>&1
  local rc=$? requeued=no
  grep -q '^scontrol requeue 7$' calls 2> /dev/null && requeued=requeued
  [ "$rc $requeued" = "$4 $5" ] && return
  echo "$1: expected $4 $5, got $rc $requeued:"
  cat log
  failures=$((failures + 1))
}
called() {
  grep -q -x -e "$1" calls 2> /dev/null && return
  echo "expected a call of '$1', got: $(cat calls 2> /dev/null)"
  failures=$((failures + 1))
}

write() { echo "echo $1 > $file;"; }
expect "complete" "" "$(write 'false 8') exit 0" 0 no
called "srun --mpi=pmix ./harness sweep config.yaml --rounds 4 -o $file"
[ "$(cat end)" = "$(date -d 2026-01-02T03:04:05 +%s)" ] || { echo "the end of the allocation: $(cat end)"; failures=1; }
expect "complete, a case failed" "" "$(write 'false 8') exit 4" 4 no
stand_in bin/squeue 'exit 1'
expect "the end of the allocation is unknown" "" "$(write 'false 8') exit 0" 0 no
[ -z "$(cat end)" ] || { echo "the end of the allocation, which squeue does not tell: $(cat end)"; failures=1; }
REQUEUE_RC=0 expect "partial" "" "$(write 'true 3') exit 5" 1 requeued  # 1: the stand-in does not end the script
expect "partial, a case failed" "" "$(write 'true 3') exit 5" 1 requeued
expect "partial, resumed" "true 3" "$(write 'true 5') exit 5" 1 requeued
called "srun --mpi=pmix ./harness sweep --resume $file"
expect "resumed and completed" "true 3" "$(write 'false 8') exit 0" 0 no
expect "resumed, got no further" "true 3" "$(write 'true 3') exit 5" 1 no
expect "no block at all" "" "$(write 'true -1') exit 5" 1 no
expect "an error" "" "exit 1" 1 no
expect "an error, with a partial file" "true 3" "exit 1" 1 no
expect "killed" "true 3" "$(write 'true 5') kill -KILL \$\$" 137 no
expect "complete before" "false 8" "exit 1" 0 no
[ ! -e calls ] || { echo "a complete file was measured again: $(cat calls)"; failures=1; }
expect "unreadable" " " "exit 0" 1 no
REQUEUE_RC=1 expect "requeue refused" "" "$(write 'true 3') exit 5" 1 requeued

# The signal of --signal=B:USR1: the step gets SIGINT, and its own exit code counts, not that of the interrupted wait.
finish="trap '$(write 'true 4') exit 5' TERM; kill -USR1 \$PPID; for i in {1..100}; do /bin/sleep 0.1; done; exit 9"
expect "signal" "" "$finish" 1 requeued
called "scancel --signal=INT 7"
HARNESS_LAUNCH="fake_mpirun -n 2" && export HARNESS_LAUNCH
# shellcheck disable=SC2016
stand_in bin/fake_mpirun 'bash -c "$SWEEP" & wait $!'
expect "signal, mpirun" "" "${finish/\$PPID/\$(ps -o ppid= -p \$PPID)}" 1 requeued
called "pkill -INT -P [0-9]*"

[ $failures = 0 ] && echo "slurm.sbatch: passed"
exit $((failures > 0))
