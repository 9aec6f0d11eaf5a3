# What each target shows is said by `make help`. All of them work on a fresh
# clone with Go, and get what else they need themselves.

SEEDS  ?= 500
TIME   ?= 60s
PROOF  := internal/proof
comma  := ,
# A go.mod is changed by hand alone, whatever GOFLAGS says elsewhere.
export GOFLAGS := $(strip $(filter-out -mod=%,$(shell go env GOFLAGS)) -mod=readonly)
# The other modules. In each the plain go commands work too.
MODULES := backends/azureblob backends/mysql backends/nats backends/redis backends/s3 bench cmd/elector examples/service examples/recipes integrations/electorprom integrations/electorotel integrations/electorgocron integrations/electorcontroller
METRICS := internal/proof/metrics
CONTROLLERS := internal/proof/controllers
tags    = $(if $(filter $(CONTROLLERS),$(1)),-tags kubernetes)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
ERRORLINT   := github.com/polyfloyd/go-errorlint@v1.8.0
ACTIONLINT  := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.PHONY: help demo demo-partitions demo-stores demo-cli test test-all test-change metrics controllers sim mutants fuzz model chaos soak mixed storms adversary overlap bench bench-partitions bench-peers lint lint-systems least pictures deps stores kube-apiserver images test-containers test-declared api dist release-check

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-15s %s\n", $$1, $$2}'

demo: ## three processes elect leaders on this machine; the demo kills, freezes and stops them
	@mkdir -p bin && go build -tags fileonly -o bin/singleton ./examples/singleton
	@exec bin/singleton demo

demo-partitions: ## processes share 24 partitions on this machine; they join, leave, are frozen and killed, and each item is counted once
	@mkdir -p bin && go build -o bin/partitions ./examples/partitions
	@exec bin/partitions demo

demo-stores: stores ## two processes on each real store, moved by ELECTOR_URL alone; KINDS="etcd gcs" for some
	cd $(PROOF) && go run ./cmd/demo $(KINDS)

# SEED repeats the order of the faults; MUTANT takes a broken one, which must be found:
# no-guardian, pdeathsig-alone, resigned-before-the-reaping, grace-beyond-h.
ROUNDS ?= 50
demo-cli: stores ## elector run under ROUNDS faults: no descendants of two terms at once, none past its lease; cron; etcdctl lock beside it
	cd $(PROOF) && go run ./cmd/democli -rounds $(ROUNDS) $(if $(SEED),-seed $(SEED)) $(if $(MUTANT),-mutant $(MUTANT))

DEFAULT := etcd postgres zookeeper dynamodb gcs
MORE := azureblob consul kubernetes mysql nats redis s3

test: ## the core, the suite on seven backends on real stores, faults, groups, the example service and the commands of the pages, in ten minutes on two processors; KINDS="consul s3" for the suite and the faults on these stores alone
	@go run ./internal/parts $(if $(KINDS),-kinds "$(KINDS)")

test-all: ## everything that can be tested, on all stores; PART=1/4 for a fourth of it; ONLY=suite/ for the parts whose names begin so
	@go run ./internal/parts -all $(if $(PART),-part $(PART)) $(if $(ONLY),-only $(ONLY))

# SINCE is a revision, for example that of the last push.
test-change: ## what make test leaves out, and a change since the revision SINCE touches; WITHIN=4m begins no part later
	@go run ./internal/parts -since $(SINCE) $(if $(PART),-part $(PART)) $(if $(WITHIN),-within $(WITHIN))

metrics: stores ## the alert rules and the dashboard on Prometheus itself, which watches a lease being lost
	cd $(METRICS) && go test -count=1 -v ./...

controllers: kube-apiserver ## two controller-runtime managers on a real API server, under elector and under client-go's lock: the leader cut off, and stopped and continued
	cd $(CONTROLLERS) && go test -tags kubernetes -count=1 -timeout=20m -v ./...

TAKEOVERS ?= 500
storms: ## paused writers of overtaken leaders against the guards of the stores, for TAKEOVERS in each storm; KINDS="mysql redis" for more stores
	@$(MAKE) stores KINDS="$(DEFAULT) $(KINDS)"
	cd $(PROOF) && go test -tags "$(KINDS)" ./storms -count=1 -v -timeout=0 -args -takeovers=$(TAKEOVERS)

STOPS ?= 10000
adversary: stores ## leaders stopped STOPS times where it hurts, until a successor has written; no late write may pass a guard
	cd $(PROOF) && go test ./adversary -count=1 -v -timeout=0 -args -stops=$(STOPS) -elections=4

sim: ## the simulation over SEEDS seeds, with its figures
	go test ./internal/simulation -count=1 -v -timeout=0 -seeds=$(SEEDS)

mutants: ## break the code on purpose: each break must be caught by the case named for it; PART=1/3 for a third of them, SINCE=revision for those that a change touches, MOST=50 for so many
	go run ./internal/mutants $(if $(PART),-part $(PART)) $(if $(SINCE),-since $(SINCE)) $(if $(MOST),-most $(MOST))

# PLACES selects some, with commas; MUTANT takes a broken candidate, which must
# be found.
DURATION ?= 10m
chaos: stores ## break network, processes and stores for DURATION; SEED=7 for the same faults, MUTANT=token-stays to see one found
	cd $(PROOF) && go run ./cmd/chaos -out $(CURDIR)/bin/chaos -duration $(DURATION) $(if $(SEED),-seed $(SEED)) $(if $(PLACES),-places "$(PLACES)") $(if $(MUTANT),-mutant $(MUTANT))

HOURS ?= 8
soak: stores ## make chaos again and again for HOURS, each with the next seed and for ROUND=10m; it adds up in LEDGER, by default bin/soak/ledger.tsv, and goes on from there
	cd $(PROOF) && go run ./cmd/soak -out $(CURDIR)/bin/soak -hours $(HOURS) $(if $(ROUND),-round $(ROUND)) $(if $(LEDGER),-ledger $(abspath $(LEDGER))) $(if $(PLACES),-places "$(PLACES)")

# The last tagged version, or the commit before partitions until there is one.
OLDER ?= $(or $(shell git tag --list 'v*' --sort=-version:refname | head -1),859c431)
mixed: stores ## this version and an older one in one election, under the faults of make chaos for DURATION; OLDER=v0.1.0 for another one
	cd $(PROOF) && go run ./cmd/chaos -out $(CURDIR)/bin/mixed -duration $(DURATION) $(if $(SEED),-seed $(SEED)) -places "$(or $(PLACES),etcd$(comma)postgres$(comma)file)" -older $(OLDER)

overlap: stores $(if $(or $(if $(PEERS),,all),$(findstring client-go,$(PEERS))),kube-apiserver) ## how long two processes lead at once after a cut, with other libraries and ours; PEERS="etcd pglock" for some
	cd bench && go run ./cmd/overlap $(PEERS)

model: ## the protocol as models for spin, searched exhaustively, and its mutants; LARGE=1 for larger bounds
	go run ./internal/model $(if $(LARGE),-large)

fuzz: ## every decoder, URL, name and token, TIME for each target; what is found stays in testdata/fuzz
	go run ./internal/fuzz -time $(TIME) . $(filter backends/%,$(MODULES))

bench: stores ## Check against time.Now; the requests to every store against the budget, handovers, and guarded writes; KINDS="etcd gcs" for some
	go test -run '^TestCheckCost$$' -count=1 -v . -cost
	cd bench && go run ./cmd/budget $(KINDS)
	cd bench && go run ./cmd/fenced $(KINDS)

# With LARGE=1 the simulated group takes half an hour of a processor and 10 GB.
SIMULATED_GROUP = -processes $(if $(LARGE),1000 -groups 10,200) -owned 100
bench-partitions: stores ## requests, moves, time and memory of 10 processes that share 10,000 partitions, then of 200 simulated ones, and groups side by side with other libraries; LARGE=1 for 1,000; KINDS="kubernetes s3" for other stores than etcd, postgres and dynamodb
	cd bench && go run ./cmd/partitions $(KINDS)
ifeq ($(KINDS),)
	cd bench && $(if $(LARGE),GOGC=25 )go test ./cmd/partitions -run '^TestSimulated$$' -count=1 -v -timeout=0 -args $(SIMULATED_GROUP)
	cd bench && go run ./cmd/groups -short
endif

bench-peers: stores kube-apiserver ## what an election costs with other libraries and with ours; SHORT=1 for two minutes, into bin/peers
	cd bench && go run ./cmd/compare $(if $(SHORT),-short -out $(CURDIR)/bin/peers)

LEAST = GOTOOLCHAIN=go$$(awk '/^go /{print $$2}' go.mod) go
least: ## build the library with the least Go version that go.mod names, and test the core with it
	$(LEAST) version && $(LEAST) build ./... && $(LEAST) test . ./backends ./internal/rule ./partition ./electorhttp ./electortest

pictures: ## the pictures of the README, from real runs; needs Chromium
	go run ./internal/pictures

# The packages that a system may compile otherwise, or not at all: those with files for some
# systems alone, and those that import what has no promise to be the same on each.
OFTHESYSTEM = GOOS=$$system go list -tags fileonly -f '{{.ImportPath}} {{.IgnoredGoFiles}} {{.Imports}} {{.TestImports}} {{.XTestImports}}' ./... | grep -E '\.go[] ]|[[ ](syscall|golang.org/x/sys)' | cut -d ' ' -f 1
# Comparisons of errors in tests are exact on purpose, so errorlint leaves them out.
lint: ## gofmt, go vet, also for two other systems where the code knows its system, staticcheck, errorlint, actionlint, what changed in the API, and where errors may be told apart
	@test -z "$$(gofmt -l . | tee -a /dev/stderr)"
	@! grep -nE 'errors\.(Is|As|AsType)\b|err(or)? [!=]= (Err|backends\.|context\.)' $$(ls *.go | grep -vE '^errors.go$$|_test.go$$') || { echo "the core tells errors apart in errors.go alone"; exit 1; }
	@echo "vet" && go vet ./...
	@for system in darwin windows; do echo "vet for $$system"; CGO_ENABLED=0 GOOS=$$system go vet -tags fileonly $$($(OFTHESYSTEM)) || exit 1; done
	@echo "vet $(PROOF)" && cd $(PROOF) && go vet -tags "containers $(MORE)" ./...
	@$(MAKE) --no-print-directory $(addprefix lint/,$(MODULES) $(METRICS) $(CONTROLLERS))
	@for dir in . $(PROOF); do echo "staticcheck $$dir"; (cd $$dir && go run $(STATICCHECK) -tags "containers $(MORE)" ./...) || exit 1; done
	@for dir in . $(PROOF); do echo "errorlint $$dir"; (cd $$dir && go run $(ERRORLINT) -test=false ./... 2>&1) | grep -vE '^exit status|^go: downloading' && exit 1; done; true
	@echo "actionlint" && go run $(ACTIONLINT)
	@echo "API" && go run ./internal/api

lint/%:
	@echo "vet $*" && cd $* && go vet $(call tags,$*) ./...
	@echo "staticcheck $*" && cd $* && go run $(STATICCHECK) $(call tags,$*) ./...

lint-systems: ## go vet of everything for two other systems, which builds all clients of all stores for them
	@for system in darwin windows; do echo "vet for $$system"; CGO_ENABLED=0 GOOS=$$system go vet ./... || exit 1; done
	@for system in darwin windows; do echo "vet cmd/elector for $$system"; (cd cmd/elector && CGO_ENABLED=0 GOOS=$$system go vet ./...) || exit 1; done
	@echo "vet $(PROOF) for darwin" && cd $(PROOF) && CGO_ENABLED=0 GOOS=darwin go vet -tags "containers $(MORE)" ./...

api: ## write the baseline of the exported API, which make lint compares with
	go run ./internal/api -update

deps: ## the core imports only the standard library, its rules only package backends, no backend another store's client; only internal/store makes requests; no file or struct of the core is too large; and how many lines it has
	@go run ./internal/deps

stores: ## fetch the real stores that are missing, and Prometheus, into .stores/; KINDS=kubernetes for one that takes long to build
	cd $(PROOF) && go run ./cmd/fetch $(KINDS) $(filter $(DEFAULT) $(MORE),$(subst $(comma), ,$(PLACES)))

kube-apiserver: # what make stores leaves out
	cd $(PROOF) && go run ./cmd/fetch kubernetes

images: ## build stand-ins for the images of the stores, where no registry can be reached; KINDS="consul s3" for others than the five
	cd $(PROOF) && go run ./cmd/images -kinds "$(CONTAINED)"

# An official image is taken where it can be had, a stand-in elsewhere;
# ELECTOR_TEST_IMAGE_ETCD and the like name others. No store may be a local
# process here. CASES selects of the suite: backend, elector, or a pattern.
CASES ?= .
CONTAINED = $(or $(KINDS),$(DEFAULT))
test-containers: $(if $(KINDS),stores) ## the suite on the five stores in containers, or KINDS="azureblob consul mysql s3"; starts Docker's engine if none answers
	@echo "cases of the suite: $(CASES)"
	cd $(PROOF) && ELECTOR_TEST_METHOD=docker go run ./cmd/images -kinds "$(sort etcd $(CONTAINED))" \
		go run -C $(CURDIR) ./internal/parts -only containers/ -kinds "$(CONTAINED)" -cases "$(CASES)"

test-declared: ## the suite on real stores with the very client versions that go.mod declares; KINDS="etcd gcs" for some, CASES=backend for some cases
	@mkdir -p bin
	cd $(PROOF) && go run ./cmd/declared $(CURDIR)/bin/declared.mod
	@go run ./internal/parts -only declared/ $(if $(KINDS),-kinds "$(KINDS)") -cases "$(CASES)"

# The version is by default what git describe finds, and the times are those of the
# commit, or SOURCE_DATE_EPOCH.
dist: ## build VERSION of elector for Linux and macOS into bin/dist: archives, Debian packages, images, bills of materials and checksums, the same bytes each time
	@rm -rf bin/dist
	go run ./internal/dist -out bin/dist $(if $(VERSION),-version $(VERSION))

# MUTANT takes a build that differs from one time to the next, which must be found.
release-check: ## rehearse the release VERSION of the last commit: go get, go install and the README's first lines, through a module proxy in a folder; and make dist in two folders, for this machine
	cd $(PROOF) && go run ./cmd/release -version $(or $(VERSION),v0.1.0) $(if $(MUTANT),-mutant $(MUTANT))
