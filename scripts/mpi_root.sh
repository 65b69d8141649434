# shellcheck shell=sh disable=SC2034
# Sourced. Open MPI refuses to run as root unless told to. On a new machine or in a container, root is often the only
# user. The setting reaches only the children of the sourcing script.
if [ "$(id -u)" = 0 ] && [ -z "${OMPI_ALLOW_RUN_AS_ROOT:+${OMPI_ALLOW_RUN_AS_ROOT_CONFIRM:-}}" ]; then
  echo "${0##*/}: running as root; OMPI_ALLOW_RUN_AS_ROOT=1 is set for mpirun" >&2
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# More ranks than cores are intended here. Only Open MPI needs an option for it.
oversubscribe=""
if mpirun --version 2> /dev/null | grep -q -e 'Open MPI' -e OpenRTE; then oversubscribe=--oversubscribe; fi
