#!/bin/sh
# Regenerates results/example.h5 with the demo's sweep on 2 ranks of this machine, which should be otherwise idle. Then
# `HARNESS_UPDATE_GOLDEN=1 scripts/test.sh quick -R Readme` writes its numbers into README.md.
# usage: scripts/example.sh      environment: PRESET=NAME (as of demo.sh)
set -eu
cd "$(dirname "$0")/.."
exec scripts/demo.sh configs/laptop.yaml 2 -o results/example.h5 --force
