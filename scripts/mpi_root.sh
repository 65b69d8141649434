# shellcheck shell=sh disable=SC2034
# Sourced. Open MPI refuses to run as root unless told to; on a bare machine or in a container there is nobody else.
# Told to the children of this script only.
if [ "$(id -u)" = 0 ] && [ -z "${OMPI_ALLOW_RUN_AS_ROOT:+${OMPI_ALLOW_RUN_AS_ROOT_CONFIRM:-}}" ]; then
  echo "${0##*/}: running as root: OMPI_ALLOW_RUN_AS_ROOT=1 is set for the mpirun started here" >&2
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# More ranks than cores are meant here; only Open MPI wants that in writing.
oversubscribe=""
if mpirun --version 2> /dev/null | grep -q -e 'Open MPI' -e OpenRTE; then oversubscribe=--oversubscribe; fi
