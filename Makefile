# perfmq. `make` lists the targets.
#
# Every tool is a Go module, pinned here and run by the go command: nothing to install beforehand but Go. The tests that
# need a broker also need a JDK, Maven and curl; the harness fetches the brokers by their Maven coordinates, once.

GO           ?= go
GOLANGCI     := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOFUMPT      := mvdan.cc/gofumpt@v0.12.0
GORELEASER   := github.com/goreleaser/goreleaser/v2@v2.15.1
CRANE        := github.com/google/go-containerregistry/cmd/crane@v0.22.1
GOVULNCHECK  := golang.org/x/vuln/cmd/govulncheck@v1.9.0
VULNDB       := golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018
ACTIONLINT   := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
TEST_TIMEOUT ?= 24m
FUZZ_TIME    ?= 10s
FUZZ_SESSION_TIME ?= 10m

export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help build release-snapshot man test unit lint vulnerabilities fmt fuzz fuzz-session features failures starts soak docs site limits bench bench-artemis bench-peers bench-connections bench-broker bench-proxy bench-verify acceptance clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the static binaries bin/perfmq and bin/perfmq-library (RocketMQ's --client library)
	$(GO) build -ldflags '-s -w' -o bin/ ./cmd/...

release-snapshot: ## make dist/: a release of the last commit, published nowhere, twice with one hash, and test its packages and image
	./scripts/release-snapshot.sh dist

man: ## write the man pages into bin/man
	$(GO) run ./internal/mangen bin/man

test: build ## run all checks: vet, all tests, the race detector; starts real brokers, on loopback only
	./scripts/test.sh $(TEST_TIMEOUT)

# Many packages at once, those that wait longest first: they wait for time to pass more than they compute.
unit: ## run the tests that need no broker and no other program, of all packages, in a minute
	GOGC=400 $(GO) test -short -p 8 ./internal/cli ./internal/broker/rocketmq ./internal/hostile ./internal/drivers/... ./internal/broker/... ./...

lint: ## run the linters of .golangci.yml, actionlint, and the checks of licences and known vulnerabilities
	$(GO) run $(GOLANGCI) run ./...
	cd internal/lab/release && $(GO) run $(GOLANGCI) run -c ../../../.golangci.yml --build-tags dist ./...
	./scripts/example.sh $(GO) run $(GOLANGCI) run -c ../../.golangci.yml ./...
	$(GO) run $(ACTIONLINT) deploy/ci/github.yml .github/workflows/*.yml
	$(GO) run $(GORELEASER) check
	$(GO) run -C internal/lab/release . licences
	$(MAKE) vulnerabilities

vulnerabilities: ## look for known vulnerabilities in the code that perfmq reaches
	./scripts/vulnerabilities.sh $(GOVULNCHECK) $(VULNDB)

fmt: ## format all Go files
	$(GO) run $(GOFUMPT) -w cmd examples internal pkg scenarios

fuzz: ## run each fuzz test for FUZZ_TIME (10s)
	./scripts/fuzz.sh $(FUZZ_TIME)

fuzz-session: ## run loads through a proxy that mutates the bytes, for FUZZ_SESSION_TIME (10m) per protocol; see docs/lab/hostile.md
	$(GO) test ./internal/hostile -run '^Test(Session|Reconnects)$$' -count=1 -v -timeout 0 -session.time $(FUZZ_SESSION_TIME) -session.seed 0

features: ## make docs/lab/features.md: the conformance suite on all brokers and versions; half an hour, as root
	./scripts/features.sh docs/lab/features.md

failures: build ## make docs/lab/failures.md: brokers that fail under load, and what perfmq reports of it; two hours, on an idle machine
	$(GO) run ./internal/lab failures -out docs/lab/failures.md

starts: build ## make docs/lab/starts.md: brokers that start with up to 2,000,000 stored messages; on an idle machine
	$(GO) run ./internal/lab starts -out docs/lab/starts.md

soak: build ## make docs/reports/soak.*: an hour of load on an Artemis that is killed and stopped
	mkdir -p docs/reports
	$(GO) run ./internal/lab soak -out docs/reports/soak.md

docs: ## run the commands in README.md and docs/ and write their output into the pages; best on an idle machine
	$(GO) test ./internal/cli -run '^TestSettingsReference$$' -update
	$(GO) test ./internal/e2e -run '^TestDocuments$$' -count=1 -update

site: ## build the documentation as a site into bin/site, check its links and the templates for CI; needs Python
	./scripts/site.sh bin/site

acceptance: build ## make docs/lab/acceptance.md: the shipped scenarios at full size on real brokers; an hour and more, on an idle machine
	$(GO) test ./internal/e2e -run '^Test(Shipped)?Scenarios' -count=1 -timeout 60m -scenarios.all
	$(GO) run ./internal/lab acceptance -out docs/lab/acceptance.md

limits: ## try each limit of a load, and make 20 runs of loads without one for docs/lab/benchmarks.md; on an idle machine
	$(GO) test ./internal/e2e -run '^TestLimit' -count=1 -v -limits.all
	$(GO) test ./internal/e2e -run '^TestQuietRuns$$' -count=1 -v -timeout 60m -quiet.runs 20

bench: ## run the benchmarks of the hot path, in process
	$(GO) test -run '^$$' -bench . -benchmem ./internal/stats ./internal/load ./internal/engine ./internal/wire/...

bench-artemis: build ## compare perfmq and artemis perf on one real Artemis
	$(GO) run ./internal/lab bench -only '^artemis/'

bench-connections: build ## open up to 50,000 connections to the embedded broker, and up to 5,000 to others; 6 minutes, on an idle machine
	$(GO) run ./internal/lab connections

bench-broker: build ## compare the embedded broker and Artemis under the same load
	$(GO) run ./internal/lab bench -only '^broker-'

bench-peers: build ## compare perfmq with other clients over each protocol, and with itself over 10,000 connections
	$(GO) run ./internal/lab bench -only '^(library|connections|rocketmq|stomp)'

bench-proxy: build ## compare perfmq over gRPC with perfmq over remoting, and with RocketMQ's client for gRPC
	$(GO) run ./internal/lab bench -only '^proxy-'

bench-verify: build ## measure the cost of --verify, on real brokers, the embedded one, and none
	$(GO) build -o bin/ ./pkg/driver/drivertest/perfmq-mem
	$(GO) run ./internal/lab bench -duration 8 -warmup 2 -repeat 5 -only '^verify-'

clean: ## remove the files made by targets
	rm -rf bin dist
