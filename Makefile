# What each target shows is said by `make help`. All of them work on a fresh
# clone with Go, and get what else they need themselves.

SEEDS  ?= 500
STORES := conformance/stores
TABLE  := $(CURDIR)/bin/table.txt
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0

.PHONY: help demo test sim mutants bench lint deps stores check

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-10s %s\n", $$1, $$2}'

demo: ## three processes elect a leader on this machine; it is killed, frozen, told to stop
	@mkdir -p bin && go build -o bin/singleton ./examples/singleton
	@exec bin/singleton demo

test: stores ## unit tests, simulation, and the suite on memory, file, etcd and PostgreSQL
	go test -race ./...
	@mkdir -p bin && rm -f $(TABLE)
	cd $(STORES) && ELECTOR_TABLE=$(TABLE) go test -count=1 -timeout=20m ./...
	@cat $(TABLE)
	@! grep -E 'DID NOT RUN|failed' $(TABLE)

sim: ## the simulation over SEEDS seeds, with its figures
	go test ./internal/simulation -count=1 -v -seeds=$(SEEDS)

mutants: ## break the code on purpose: each break must be caught by the case named for it
	go run ./internal/mutants

bench: stores ## Check against time.Now; requests to etcd and PostgreSQL against the budget
	go test -run '^TestCheckCost$$' -count=1 -v . -cost
	cd $(STORES) && go run ./cmd/budget

lint: ## gofmt, go vet for three systems, staticcheck
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	@for system in linux darwin windows; do echo "vet for $$system"; GOOS=$$system CGO_ENABLED=0 go vet ./... || exit 1; done
	@cd $(STORES) && for system in linux darwin; do echo "vet $(STORES) for $$system"; GOOS=$$system CGO_ENABLED=0 go vet ./... || exit 1; done
	@for dir in . $(STORES); do echo "staticcheck $$dir"; (cd $$dir && go run $(STATICCHECK) ./...) || exit 1; done

deps: ## the core imports only the standard library, no backend another store's client
	@go run ./internal/deps

stores: ## fetch the real stores that are missing into .stores/
	cd $(STORES) && go run ./cmd/fetch
