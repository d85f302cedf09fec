#!/usr/bin/env bash
# Runs the Go tests with the race detector: race.sh <arguments of go test> (packages last).
#
# Now and then the race detector itself gives up: with a failed check of its own ("ThreadSanitizer: CHECK failed"), or with a
# fault inside it (a SIGSEGV on the runtime's way into it, racecall). Both say nothing about the program. A package that failed
# with that, and with no failed test, race or panic beside it, is run again, four times at most (seen in app/linktest, with
# hundreds of devices). Everything else fails at once.
set -uo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The packages of a log of go test that failed only because of the race detector's own end; nothing if any failed for another
# reason. Packages come one after the other, each ended by its own line.
detector_gave_up() {
	awk '
		/^(--- FAIL|[[:space:]]+--- FAIL|panic:|fatal error:|WARNING: DATA RACE)/ { real = 1 }
		/ThreadSanitizer: CHECK failed/ { gave_up = 1 }
		/^SIGSEGV: segmentation violation/ { fault = 1 }
		fault && /<racecall\+/ { gave_up = 1 }
		/^signal arrived during cgo execution/ { real = 1 }
		/^(ok|\?|---)[[:space:]]/ && !/^---/ { real = gave_up = fault = 0 }
		/^FAIL[[:space:]]+[^[:space:]]+/ {
			if (gave_up && !real) again[++n] = $2; else other = 1
			real = gave_up = fault = 0
		}
		END { if (!other) for (i = 1; i <= n; i++) print again[i] }
	' "$1"
}

if [ "${1-}" = --gave-up ]; then
	detector_gave_up "$2"
	exit
fi

packages=()
args=()
for arg in "$@"; do
	case $arg in ./* | .) packages+=("$arg") ;; *) args+=("$arg") ;; esac
done
for try in 1 2 3 4 5; do
	go test -race "${args[@]}" "${packages[@]}" 2>&1 | tee "$log"
	status=${PIPESTATUS[0]}
	[ "$status" -eq 0 ] && exit 0
	mapfile -t packages < <(detector_gave_up "$log")
	[ "${#packages[@]}" -gt 0 ] || exit "$status"
	echo "the race detector itself gave up (run $try): ${packages[*]}"
done
exit "$status"
