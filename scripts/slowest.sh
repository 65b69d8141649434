#!/bin/sh
# Prints the fifteen slowest compilations or tests of a build folder's last run, from the logs of Ninja and ctest.
# usage: scripts/slowest.sh FOLDER compilations|tests
if [ "$2" = tests ]; then
  awk '/^[0-9]+\/[0-9]+ Test: / { name = $3 } /^Test time =/ { printf "%8.1f s  %s\n", $4, name }' \
    "$1/Testing/Temporary/LastTest.log"
else
  awk 'NR > 1 { took[$4] = ($2 - $1) / 1000 } END { for (t in took) printf "%8.1f s  %s\n", took[t], t }' "$1/.ninja_log"
fi 2> /dev/null | sort -rn | head -n 15
