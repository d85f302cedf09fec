#!/usr/bin/env bash
# Runs the Go benchmarks and prints a short table of what they report: bench.sh <build tags> <time each>. What is printed
# by the benchmarks themselves stays in .tmp/bench.txt.
set -euo pipefail

tags=$1 time=$2
mkdir -p .tmp
if ! go test -tags "$tags" -run '^$' -bench . -benchtime "$time" -benchmem -timeout 60m ./... >.tmp/bench.txt 2>&1; then
	cat .tmp/bench.txt
	exit 1
fi
# A line of a benchmark is its name, how often it ran, and pairs of a number and what is counted. Times of a loop's turn
# and of memory say nothing where a benchmark reports figures of its own.
awk '
	# What each gate of a call adds, in one place: where its figure is, and the figure.
	function gate(what, figure) { gates = gates sprintf("  %-36s  %s\n", what, figure) }
	function figure(unit,   i) { for (i = 3; i < NF; i++) if ($(i + 1) == unit) return $i; return "?" }
	/^BenchmarkAdmit(-[0-9]+)? / { gate("auth, a call", figure("ns/op") " ns (Admit)") }
	/^BenchmarkDecide\// { gate("policy, a call", figure("ns/op") " ns (" substr($1, 10) ")") }
	/^BenchmarkAudit\/without/ { bare = figure("ns/op") }
	/^BenchmarkAudit\/with-|^BenchmarkAudit\/with / {
		gate("audit, a command, in the store", sprintf("%d ns (Audit: %d less %d)", figure("ns/op") - bare, figure("ns/op"), bare))
	}
	/^BenchmarkOverhead\/callers=/ {
		gate("audit, a round trip, p50", figure("effects-p50-ratio") " times (" substr($1, 10) ")")
		gate("audit, throughput", figure("effects-throughput-ratio") " times (" substr($1, 10) ")")
	}
	END { if (gates != "") printf "what auth, policy and audit add\n%s", gates }
	/^pkg: / { package = $2; sub(/^throwbar\.dev\/throwbar\//, "", package) }
	/^Benchmark/ && NF > 3 {
		name = $1
		sub(/^Benchmark/, "", name)
		sub(/-[0-9]+$/, "", name)
		if (package != last) { print package; last = package }
		line = ""
		own = 0
		for (i = 3; i < NF; i += 2) if ($(i + 1) !~ /^(ns|B|allocs)\/op$/) own = 1
		for (i = 3; i < NF; i += 2) {
			if (own && $(i + 1) ~ /^(ns|B|allocs)\/op$/) continue
			line = line sprintf("  %s %s", $i, $(i + 1))
		}
		printf "  %-36s%s\n", name, line
	}
' .tmp/bench.txt
