#!/usr/bin/env bash
# Runs every Go fuzz target of the main module for a short time: fuzz-smoke.sh <build tags> <time each>.
set -euo pipefail

tags=$1 time=$2 targets=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# An input that is new is made shorter by a number of runs: by default the engine takes up to a minute for that, and so all
# the time of a target whose inputs are long.
fuzz() { # <target> <folder> <time or number of runs>
	go test -tags "$tags" -run '^$' -fuzz "^$1\$" -fuzztime "$3" -fuzzminimizetime 50x "./$2" 2>&1 | tee "$log"
}

# The fuzzing engine now and then reports the end of its own time as a failure, without a failing input (golang/go#75804).
# Only that is tried again, by a number of runs, which has no such end.
ended_by_its_own_clock() {
	grep -qE '^ +context deadline exceeded$' "$log" && ! grep -qE 'Failing input written|panic:|_test\.go:[0-9]+' "$log"
}

while IFS=: read -r file name; do
	folder=$(dirname "$file")
	echo "fuzz $name in $folder"
	if ! fuzz "$name" "$folder" "$time"; then
		ended_by_its_own_clock || exit 1
		echo "fuzz $name in $folder: again, by number of runs"
		fuzz "$name" "$folder" 2000x
	fi
	targets=$((targets + 1))
done < <(git grep --untracked --no-color -oE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' ':!tools' | sed 's/:func /:/')
echo "fuzz targets run: $targets"
