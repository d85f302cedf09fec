#!/usr/bin/env bash
# Runs the long versions of what the tests run shortly, one after the other on an otherwise quiet machine, and writes
# their figures to .tmp/soak.txt: soak.sh <build tags>. SEEDS, IDLE and FUZZTIME say how long. A part that fails does not
# keep the others from running.
set -euo pipefail

tags=$1
: "${SEEDS:=5000}" "${IDLE:=30m}" "${FUZZTIME:=60s}"
figures=$PWD/.tmp/soak.txt failed=()
mkdir -p .tmp
printf 'Soak of %s, %s\n%s cores, %s MiB of memory\n\n' "$(git describe --always --dirty)" "$(date -u +%F)" "$(nproc)" \
	"$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)" >"$figures"

# part <name> <command...> runs one part and notes how long it took and how it ended.
part() {
	local name=$1 start=$SECONDS verdict=ok log=.tmp/soak-$1.log
	shift
	echo "=== soak: $name (output in $log)"
	if ! "$@" >"$log" 2>&1; then
		verdict=FAILED
		failed+=("$name")
		tail -n 40 "$log"
	fi
	echo "$name: $verdict after $((SECONDS - start)) s" | tee -a "$figures"
}

# soak <test> runs a long test, which adds its own figures.
soak() {
	THROWBAR_SOAK=1 THROWBAR_SOAK_IDLE=$IDLE THROWBAR_FIGURES=$figures \
		go test -tags "$tags" -count=1 -timeout 180m -v -run "^$1\$" ./soak
}

if make -n sim >/dev/null 2>&1; then
	part lives make --no-print-directory sim SEEDS="$SEEDS"
else
	part lives go test -tags "$tags" -count=1 -timeout 180m -v ./simulation -args -seeds "$SEEDS"
fi
part kills soak TestKill
part fleet soak TestFleet
part fuzz scripts/fuzz-smoke.sh "$tags" "$FUZZTIME"

echo
cat "$figures"
if ((${#failed[@]})); then
	echo "failed: ${failed[*]}"
	exit 1
fi
