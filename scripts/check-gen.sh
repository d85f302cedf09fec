#!/usr/bin/env bash
# Fails when `make gen` would change what is in the tree, and says which files.
set -euo pipefail

snapshot() {
	local dirs=() d
	for d in gen third_party store/db; do
		[ ! -d "$d" ] || dirs+=("$d")
	done
	[ ${#dirs[@]} -eq 0 ] || find "${dirs[@]}" -type f -exec cksum {} + | sort -k3
}

before=$(snapshot)
make --no-print-directory gen
after=$(snapshot)
if [ "$before" != "$after" ]; then
	echo "generated files were not up to date; make gen has changed these, commit them:" >&2
	diff <(echo "$before") <(echo "$after") | sed -n 's/^[<>] [0-9]* [0-9]* /  /p' | sort -u >&2
	exit 1
fi
