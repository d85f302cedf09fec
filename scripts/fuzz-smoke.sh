#!/usr/bin/env bash
# Runs every Go fuzz target of the main module for a short time: fuzz-smoke.sh <build tags> <time each>.
set -euo pipefail

tags=$1 time=$2 targets=0
while IFS=: read -r file name; do
	echo "fuzz $name in $(dirname "$file")"
	go test -tags "$tags" -run '^$' -fuzz "^$name\$" -fuzztime "$time" "./$(dirname "$file")"
	targets=$((targets + 1))
done < <(git grep --untracked --no-color -oE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' ':!tools' | sed 's/:func /:/')
echo "fuzz targets run: $targets"
