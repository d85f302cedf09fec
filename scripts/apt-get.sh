#!/usr/bin/env bash
# Runs apt-get as root without questions: apt-get.sh <arguments>. It waits for another one that holds the lock, as a fresh
# machine's own does for a while, and a download that fails is tried again.
set -uo pipefail

for try in 1 2 3 4 5; do
	DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" && exit 0
	status=$?
	echo "apt-get $*: failed with $status (try $try of 5)" >&2
	if [ "$try" -lt 5 ]; then sleep $((try * 10)); fi
done
exit "$status"
