#!/usr/bin/env bash
# Checks what a fresh machine must bring: Go, Node, git and a C compiler. Everything else the make targets install.
set -euo pipefail

fail() {
	echo "prerequisite: $1" >&2
	exit 1
}

# at_least HAVE WANT: compares dotted versions.
at_least() {
	[ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1)" = "$2" ]
}

command -v go >/dev/null || fail "Go 1.26 or newer is needed, no go in PATH"
go_version=$(go env GOVERSION)
at_least "${go_version#go}" 1.26 || fail "Go 1.26 or newer is needed, this is ${go_version#go}"
command -v node >/dev/null || fail "Node 20.19 or newer is needed, no node in PATH"
node_version=$(node --version)
at_least "${node_version#v}" 20.19 || fail "Node 20.19 or newer is needed, this is ${node_version#v}"
command -v npm >/dev/null || fail "npm is needed (it comes with Node), none in PATH"
command -v git >/dev/null || fail "git is needed, none in PATH"
cc=$(go env CC)
command -v "${cc%% *}" >/dev/null || fail "a C compiler is needed for SQLite, no ${cc%% *} in PATH"
