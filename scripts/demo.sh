#!/usr/bin/env bash
# The main job, visibly: a server, two simulated browsers, and one sentence that closes tabs on one of them. The server
# and the browsers stay up at the end; the last lines say what to type next and how to stop them.
# THROWBAR_DEMO_LISTEN and THROWBAR_DEMO_DIR choose another address and folder.
set -euo pipefail
cd "$(dirname "$0")/.."

listen=${THROWBAR_DEMO_LISTEN:-127.0.0.1:3913}
dir=${THROWBAR_DEMO_DIR:-$PWD/.tmp/demo}
export THROWBAR_SERVER=http://$listen THROWBAR_DATA_DIR=$dir/data
unset THROWBAR_TOKEN_FILE
throwbar=$PWD/bin/throwbar

bold=$(tput bold 2>/dev/null || true) plain=$(tput sgr0 2>/dev/null || true)
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
# show COMMAND…: prints a command as a person would type it, and runs it.
show() {
	local typed= arg
	for arg in "$@"; do
		case $arg in *" "*) typed+=" \"$arg\"" ;; *) typed+=" $arg" ;; esac
	done
	if [ ${#typed} -gt 160 ]; then typed=${typed:0:150}…; fi
	printf '\n$ throwbar%s\n' "$typed"
	"$throwbar" "$@"
}
die() { echo "demo: $*" >&2; exit 1; }

# An earlier demo makes room. Only processes that it started are ended.
mkdir -p "$dir"
for name in sim serve; do
	if [ -f "$dir/$name.pid" ] && pid=$(<"$dir/$name.pid") && [ "$(ps -o comm= -p "$pid" 2>/dev/null)" = throwbar ]; then
		kill "$pid" 2>/dev/null || true
		for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
	fi
	rm -f "$dir/$name.pid"
done
rm -rf "$dir/data" "$dir/devices"

# until_true WHAT PID LOG COMMAND…: waits for a command to succeed, or for the process to end.
until_true() {
	local what=$1 pid=$2 log=$3
	shift 3
	for _ in $(seq 300); do
		if "$@" >/dev/null 2>&1; then return; fi
		kill -0 "$pid" 2>/dev/null || { cat "$log" >&2; die "$what ended at once"; }
		sleep 0.1
	done
	cat "$log" >&2
	die "$what did not come up within 30 seconds"
}

# A key for the default provider, or any server that speaks its protocol, makes the chat step real.
if [ -n "${OPENAI_API_KEY:-}${THROWBAR_MODEL_BASE_URL:-}" ]; then
	export THROWBAR_MODEL=${THROWBAR_MODEL:-gpt-5-mini}
fi

say "1. A server with an empty folder, and two simulated browsers that dial it"
nohup "$throwbar" serve --listen "$listen" --data-dir "$THROWBAR_DATA_DIR" >"$dir/serve.log" 2>&1 </dev/null &
echo $! >"$dir/serve.pid"
until_true "the server" "$!" "$dir/serve.log" "$throwbar" devices
nohup "$throwbar" sim --name laptop --name desktop --tabs 40 --state-dir "$dir/devices" >"$dir/sim.log" 2>&1 </dev/null &
echo $! >"$dir/sim.pid"
both_online() {
	local found
	found=$("$throwbar" tabs --query youtube --device laptop --output json) && [[ $found == *'"tabId"'* ]] &&
		found=$("$throwbar" tabs --device desktop --output json) && [[ $found == *'"tabId"'* ]]
}
until_true "the simulated browsers" "$!" "$dir/sim.log" both_online

say "2. Which devices are there?"
show devices

say "3. Which YouTube tabs are open on the laptop? (answered by the server: the device is not asked)"
show tabs --device laptop --query youtube

by_hand() {
	local ids
	ids=$("$throwbar" tabs --device laptop --query youtube --output json |
		node -e 'let s="";process.stdin.on("data",d=>s+=d).on("end",()=>console.log(JSON.parse(s).tabs.map(t=>t.tabId).join(",")))')
	if [ -n "$ids" ]; then show call closeTabs --tab-ids "$ids"; fi
}

if [ -n "${THROWBAR_MODEL:-}" ]; then
	say "4. One sentence to the agent, with the model ${THROWBAR_MODEL}"
	if ! show chat "close my YouTube tabs on my laptop"; then
		say "   That did not work: the line above says why. The same by hand, with one typed command:"
		by_hand
	fi
else
	say "4. The agent needs a model for one sentence to do it: set OPENAI_API_KEY, or THROWBAR_MODEL and
   THROWBAR_MODEL_BASE_URL, and run this again. The same by hand, with one typed command:"
	by_hand
fi

say "5. What is left of them, and what was done"
show tabs --device laptop --query youtube
show history

say "The server and both browsers are still running. Next, type:"
cat <<TEXT
  export THROWBAR_SERVER=$THROWBAR_SERVER THROWBAR_DATA_DIR=$THROWBAR_DATA_DIR
  bin/throwbar chat            talk to the agent (needs a model)
  bin/throwbar pair            pair a real browser: README, "Your own browser"
  bin/throwbar commands        everything that can be done
To stop them:
  kill $(<"$dir/sim.pid") $(<"$dir/serve.pid")
TEXT
