# Heddle. `make` lists the targets. Needs Go; the rest is fetched or asked for.

.DEFAULT_GOAL := help
export CGO_ENABLED := 0

# Programs that tests run, as Debian packages. The race detector needs a C compiler.
PROGRAMS := gcc strace

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# Seconds for all fuzz targets of a `make test` together, without building.
FUZZ_SECONDS := 60

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' Makefile

.PHONY: demo
demo: ## show the whole path in one minute, without keys or accounts
	go run ./cmd/gateway demo

.PHONY: build
build: ## build bin/gateway
	go build -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' -o bin/gateway ./cmd/gateway

.PHONY: test
test: setup lint build race fuzz ## everything, from a bare machine on: what CI runs
	@echo "== all passed"

.PHONY: check
check: lint build ## lint, build and test quickly, before a commit
	go test ./...

.PHONY: soak
soak: setup build ## the tests many times over, long fuzz runs, kills and stops under load; about an hour and a half
	CGO_ENABLED=1 go test -race -shuffle=on -count=20 -timeout 60m ./...
	tools/fuzz.sh 1200
	go run ./bench crash --gateway bin/gateway --minutes 15
	go run ./bench crash --gateway bin/gateway --minutes 10 --term

.PHONY: bench
bench: build ## measure, and write the table of docs/performance.md
	go run ./bench all --gateway bin/gateway --out docs/performance.md
	go run ./bench inside --out docs/performance.md
	go run ./bench churn --out docs/performance.md
	go test -run '^$$' -bench . -benchmem -timeout 60m ./...

.PHONY: conformance
conformance: ## run the MCP conformance suite against our client; needs npm
	tools/conformance/run.sh

.PHONY: generate
generate: ## write generated files anew
	go generate ./...

.PHONY: fmt
fmt: bin/tools ## format all code
	bin/gofumpt -w .

.PHONY: lint
lint: bin/tools ## vet, format, staticcheck, errcheck, dead code, known vulnerabilities
	@echo "== lint"
	go vet ./...
	@out=$$(bin/gofumpt -l .); [ -z "$$out" ] || { echo "not formatted, run make fmt:"; echo "$$out"; exit 1; }
	bin/staticcheck ./...
	bin/errcheck -ignoretests -exclude tools/errcheck.txt ./...
	@out=$$(bin/deadcode -test ./...) || exit 1; [ -z "$$out" ] || { echo "nothing calls:"; echo "$$out"; exit 1; }
	tools/vulnerabilities.sh

# The parts of `make test`.

.PHONY: setup
setup:
	@echo "== setup"
	@tools/setup.sh $(PROGRAMS)
	go mod download

.PHONY: race
race:
	@echo "== test"
	CGO_ENABLED=1 go test -race -shuffle=on -timeout 15m ./...
	@echo "== test at full count what the race detector thins out"
	CGO_ENABLED=0 go test -timeout 15m -run 'TestRandomCrashes|TestReconcilerAgainstReference' ./harness/turn

.PHONY: fuzz
fuzz:
	@echo "== fuzz"
	tools/fuzz.sh $(FUZZ_SECONDS)

bin/tools: tools/go.mod tools/go.sum
	GOBIN=$(CURDIR)/bin go -C tools install tool
	@touch $@

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
