#!/usr/bin/env bash
# Prints the path of a Firefox for `make test-firefox`; installs Debian's when there is none.
set -euo pipefail

find_browser() {
	local name
	for name in "${FIREFOX:-}" firefox firefox-esr; do
		if [ -n "$name" ] && command -v "$name"; then
			return 0
		fi
	done
	return 1
}

find_browser && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
		echo "firefox: none found; install it (apt-get install firefox-esr) or set FIREFOX to its path" >&2
		exit 1
	fi
	sudo=(sudo -n)
fi
command -v apt-get >/dev/null || {
	echo "firefox: none found and no apt-get here; install it or set FIREFOX to its path" >&2
	exit 1
}
apt_get=$(dirname "$0")/apt-get.sh
{
	"${sudo[@]}" "$apt_get" update
	"${sudo[@]}" "$apt_get" install --no-install-recommends firefox-esr
} >&2
find_browser || {
	echo "firefox: installed, but not found in PATH" >&2
	exit 1
}
