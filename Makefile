# Everything a developer or CI runs. `make` alone lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

GO ?= go
TAGS := sqlite_fts5
BENCHTIME ?= 1s
FUZZTIME ?= 5s
SEEDS ?= 5000
FIRST ?= 1
RACE ?=
BROWSER ?=
ONLY ?=

BUF := node_modules/.bin/buf
BIOME := node_modules/.bin/biome
# Its cache keeps absolute paths, so that one shared by two clones reports, and excludes, by the wrong clone's paths.
export GOLANGCI_LINT_CACHE := $(CURDIR)/.tmp/golangci
GOLANGCI := $(GO) tool -modfile=tools/lint/go.mod golangci-lint
SQLC := CGO_ENABLED=0 $(GO) tool -modfile=tools/sqlc/go.mod sqlc
MODULES := . tools tools/sqlc tools/lint bench/peer
NPM_STAMP := node_modules/.stamp-$(shell cksum <package-lock.json | tr ' ' -)
# Packages that are no part of the product and of no use to most targets have folders and lock files of their own.
ADDONS := tools/addons
ADDONS_STAMP := $(ADDONS)/node_modules/.stamp-$(shell cksum <$(ADDONS)/package-lock.json | tr ' ' -)
PEERS := bench/browser/peers
PEERS_STAMP := $(PEERS)/node_modules/.stamp-$(shell cksum <$(PEERS)/package-lock.json | tr ' ' -)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: prereq
prereq:
	@scripts/prereq.sh

$(NPM_STAMP): | prereq
	npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

$(ADDONS_STAMP) $(PEERS_STAMP): | prereq
	cd $(patsubst %/node_modules/,%,$(dir $@)) && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

.PHONY: npm
npm: $(NPM_STAMP) ## install the npm packages of the lock file

.PHONY: gen
gen: prereq $(NPM_STAMP) ## rebuild everything generated: gen, third_party, store/db
	$(GO) -C tools run ./cmd/print-validate "$(CURDIR)/third_party"
	$(BUF) generate
	$(BUF) build proto --exclude-imports -o gen/descriptors.binpb
	$(GO) -C tools run ./cmd/embed-descriptors "$(CURDIR)/gen/descriptors.binpb"
	$(GO) -C tools run ./cmd/gen-es-checks "$(CURDIR)/gen/descriptors.binpb" "$(CURDIR)/gen/es/throwbar/command/v1"
	$(if $(wildcard store/queries/*.sql),rm -rf store/db && $(SQLC) generate -f store/sqlc.yaml)

.PHONY: build
build: prereq ## build bin/throwbar
	$(GO) build -trimpath -tags $(TAGS) -o bin/throwbar ./cmd/throwbar

.PHONY: extension
extension: $(NPM_STAMP) ## build the browser extension into clients/extension/dist, for Chromium and for Firefox
	npm run build -w clients/extension

.PHONY: fmt
fmt: prereq $(NPM_STAMP) ## format Go, TypeScript and protobuf sources
	$(GOLANGCI) fmt
	$(BIOME) check --write
	$(BUF) format -w proto

.PHONY: lint
lint: prereq $(NPM_STAMP) ## run every linter
	$(BUF) lint
	$(BUF) format -d --exit-code proto
	$(BIOME) ci --colors=off
	$(GOLANGCI) run
	cd tools && $(GO) tool -modfile=lint/go.mod golangci-lint run --config ../.golangci.yml
	cd bench/peer && $(GO) tool -modfile=../../tools/lint/go.mod golangci-lint run --config ../../.golangci.yml

.PHONY: lint-firefox
lint-firefox: $(NPM_STAMP) $(ADDONS_STAMP)
	mkdir -p .tmp
	cd clients/extension && THROWBAR_EXTENSION_OUT="$(CURDIR)/.tmp/firefox" node scripts/build.mjs firefox
	node $(ADDONS)/lint.mjs .tmp/firefox

.PHONY: typecheck
typecheck: $(NPM_STAMP) ## check the types of all TypeScript
	npm run check --workspaces --if-present
	node_modules/.bin/tsc -p bench/browser

.PHONY: tidy
tidy: prereq ## tidy every Go module
	for m in $(MODULES); do $(GO) -C $$m mod tidy; done

.PHONY: check
check: prereq $(NPM_STAMP) ## everything that reads the sources: generated code, linters, types, laws
	scripts/check-gen.sh
	$(BUF) breaking proto --against proto/baseline.binpb
	for m in $(MODULES); do $(GO) -C $$m mod tidy -diff; done
	$(GO) vet -tags $(TAGS) ./...
	$(MAKE) --no-print-directory lint typecheck lint-firefox
	$(GO) test -tags $(TAGS) -count=1 .
	$(GO) -C tools run ./cmd/defences -check

.PHONY: test
test: prereq $(NPM_STAMP) test-web test-browser fuzz-smoke ## all tests: Go with the race detector, both databases, TypeScript, a real browser, fuzzing
	$(GO) -C tools test -race ./...
	chromium=$$(scripts/ensure-chromium.sh); postgres=$$(scripts/ensure-postgres.sh); \
		CHROMIUM=$$chromium THROWBAR_POSTGRES_BIN=$$postgres scripts/race.sh -timeout 15m -tags $(TAGS) ./...

.PHONY: test-web
test-web: $(NPM_STAMP)
	npm run test --workspaces --if-present

.PHONY: test-browser
test-browser: $(NPM_STAMP)
	chromium=$$(scripts/ensure-chromium.sh); CHROMIUM=$$chromium npm run e2e --workspaces --if-present

.PHONY: test-firefox
test-firefox: $(NPM_STAMP) ## run the extension in a real Firefox, installed when there is none; THROWBAR_SOAK_SECONDS watches its link
	firefox=$$(scripts/ensure-firefox.sh); cd clients/extension && FIREFOX=$$firefox npx vitest run --project e2e e2e/firefox.test.ts

.PHONY: fuzz-smoke
fuzz-smoke: prereq ## run each fuzz target for FUZZTIME
	scripts/fuzz-smoke.sh "$(TAGS)" "$(FUZZTIME)"

.PHONY: defences
defences: prereq ## take out one defence after the other and see its test fail; ONLY=regexp for some
	$(GO) -C tools run ./cmd/defences -tags "$(TAGS)" -only "$(ONLY)"

.PHONY: bench
bench: prereq ## run the benchmarks, each beside its floor or peer, and print a table
	scripts/bench.sh "$(TAGS)" "$(BENCHTIME)"

.PHONY: bench-browser
bench-browser: prereq $(NPM_STAMP) $(PEERS_STAMP) ## measure the browser beside two peers and print a table; a quiet machine, some minutes
	node_modules/.bin/tsc -p bench/browser
	mkdir -p .tmp/bench-browser
	$(GO) build -trimpath -tags $(TAGS) -o .tmp/bench-browser/throwbar ./cmd/throwbar
	chromium=$$(scripts/ensure-chromium.sh); \
		node bench/browser/run.mjs .tmp/bench-browser "$(CURDIR)/.tmp/bench-browser/throwbar" "$$chromium" $(BROWSER)

.PHONY: soak
soak: prereq ## the long runs, for a quiet machine: lives, kills, 10,000 devices, fuzzing; figures in .tmp/soak.txt
	scripts/soak.sh "$(TAGS)"

.PHONY: sim
sim: prereq ## run SEEDS seeds of the simulator; -race with RACE=-race
	dir=$$(test -w /dev/shm && echo /dev/shm || echo "$${TMPDIR:-/tmp}"); mkdir -p .tmp/traces; \
	THROWBAR_SIM_DIR=$$dir $(GO) test $(RACE) -tags $(TAGS) -timeout 0 -count=1 -v -run 'TestSeeds$$' ./simulation \
		-seeds=$(SEEDS) -first=$(FIRST) -traces="$(CURDIR)/.tmp/traces"

.PHONY: demo
demo: build ## start a server with simulated browsers and show a few commands
	scripts/demo.sh

.PHONY: baseline
baseline: $(NPM_STAMP) ## move the contract that later changes may not break (at a release only)
	$(BUF) build proto -o proto/baseline.binpb
