#!/usr/bin/env bash
# Prints the folder of PostgreSQL's initdb and postgres for the tests; installs Debian's when there are none. No server is
# left running, and no cluster is made: the tests start their own.
set -euo pipefail

find_bin() {
	local path dir
	if [ -n "${THROWBAR_POSTGRES_BIN:-}" ]; then
		[ -x "$THROWBAR_POSTGRES_BIN/initdb" ] && [ -x "$THROWBAR_POSTGRES_BIN/postgres" ] || {
			echo "postgres: THROWBAR_POSTGRES_BIN is $THROWBAR_POSTGRES_BIN, which has no initdb and postgres" >&2
			exit 1
		}
		echo "$THROWBAR_POSTGRES_BIN"
		return 0
	fi
	if path=$(command -v initdb); then
		dir=$(dirname "$(readlink -f "$path")")
		[ -x "$dir/postgres" ] && echo "$dir" && return 0
	fi
	for dir in $(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin 2>/dev/null | sort -rV); do
		[ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] && echo "$dir" && return 0
	done
	return 1
}

find_bin && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
		echo "postgres: none found; install it (apt-get install postgresql) or set THROWBAR_POSTGRES_BIN to the folder of its initdb" >&2
		exit 1
	fi
	sudo=(sudo -n)
fi
command -v apt-get >/dev/null || {
	echo "postgres: none found and no apt-get here; install it or set THROWBAR_POSTGRES_BIN to the folder of its initdb" >&2
	exit 1
}
apt_get=$(dirname "$0")/apt-get.sh
{
	"${sudo[@]}" "$apt_get" update
	# Debian makes a cluster and starts it as the package is installed, unless it is told not to before.
	"${sudo[@]}" "$apt_get" install --no-install-recommends postgresql-common
	"${sudo[@]}" sh -c 'mkdir -p /etc/postgresql-common/createcluster.d &&
		echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/throwbar-tests.conf'
	"${sudo[@]}" "$apt_get" install --no-install-recommends postgresql
} >&2
find_bin || {
	echo "postgres: installed, but initdb was not found" >&2
	exit 1
}
