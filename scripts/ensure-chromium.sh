#!/usr/bin/env bash
# Prints the path of a Chromium for the browser tests; installs Debian's when there is none.
set -euo pipefail

find_browser() {
	local name
	for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
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
		echo "chromium: none found; install it (apt-get install chromium) or set CHROMIUM to its path" >&2
		exit 1
	fi
	sudo=(sudo -n)
fi
command -v apt-get >/dev/null || {
	echo "chromium: none found and no apt-get here; install it or set CHROMIUM to its path" >&2
	exit 1
}
apt_get=$(dirname "$0")/apt-get.sh
{
	"${sudo[@]}" "$apt_get" update
	"${sudo[@]}" "$apt_get" install --no-install-recommends chromium
} >&2
find_browser || {
	echo "chromium: installed, but not found in PATH" >&2
	exit 1
}
