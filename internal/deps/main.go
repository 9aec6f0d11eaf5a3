// Command deps checks who may import what: the core needs only the standard
// library, its rules only the boundary to the stores, and no backend drags in another
// store's client; and which packages call a backend. It also bounds the files and structs of
// the core, and counts its lines.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/elector-go/elector"

// plain lists the packages that import only the standard library and this
// module.
var plain = []string{"", "/backends", "/backends/consul", "/backends/kubernetes", "/backends/memory", "/conformance", "/electorhttp", "/electortest", "/fence/fencesql", "/operate", rule}

// rule decides who may lead. It imports nothing that decides who should: of this module
// only the boundary to the stores.
const rule = "/internal/rule"

// clients are the stores' client libraries, by the backend that may use them.
var clients = map[string][]string{
	"dynamodb":  {"github.com/aws/aws-sdk-go-v2/service/dynamodb"},
	"etcd":      {"go.etcd.io/etcd/"},
	"file":      {"github.com/fsnotify/fsnotify"},
	"gcs":       {"cloud.google.com/go/storage"},
	"postgres":  {"github.com/jackc/pgx/"},
	"s3":        {"github.com/aws/aws-sdk-go-v2/service/s3"},
	"zookeeper": {"github.com/go-zookeeper/zk"},
}

func main() {
	wrong := 0
	refuse := func(pkg, dep, why string) {
		fmt.Printf("deps: %s imports %s: %s\n", pkg, dep, why)
		wrong++
	}
	for _, p := range plain {
		for _, dep := range imports(module + p) {
			first, _, _ := strings.Cut(dep, "/")
			if strings.Contains(first, ".") && dep != module && !strings.HasPrefix(dep, module+"/") {
				refuse(module+p, dep, "only the standard library is allowed here")
			}
		}
	}
	for _, dep := range imports(module) {
		if rest, ok := strings.CutPrefix(dep, module+"/backends/"); ok {
			refuse(module, dep, "the root imports no backend, and not "+rest)
		}
	}
	boundary := imports(module + "/backends")
	for _, dep := range imports(module + rule) {
		if strings.HasPrefix(dep, module) && dep != module+rule && !slices.Contains(boundary, dep) {
			refuse(module+rule, dep, "of this module it may import only package backends")
		}
	}
	for backend := range clients {
		pkg := module + "/backends/" + backend
		deps := imports(pkg)
		for other, prefixes := range clients {
			for _, prefix := range prefixes {
				i := slices.IndexFunc(deps, func(dep string) bool { return strings.HasPrefix(dep, prefix) })
				switch {
				case other == backend && i < 0:
					refuse(pkg, "no "+prefix, "so the table in this command is out of date")
				case other != backend && i >= 0:
					refuse(pkg, deps[i], "that is the client of "+other)
				}
			}
		}
		if slices.Contains(deps, module) {
			refuse(pkg, module, "a backend needs only package backends")
		}
	}
	line := func(line string) {
		fmt.Println("deps:", line)
		wrong++
	}
	for _, check := range []func(func(string)) error{sizes, callsBackends, printLines} {
		if err := check(line); err != nil {
			fmt.Println("deps:", err)
			os.Exit(1)
		}
	}
	if wrong > 0 {
		os.Exit(1)
	}
	fmt.Printf("deps: %d packages need only the standard library; the rules import only package backends; %d backends import no other store's client\n", len(plain), len(clients))
}

// imports lists what a package imports, itself and indirect ones included, and
// on every system that is supported.
func imports(pkg string) []string {
	var all []string
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-deps", pkg)
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		if dir := strings.TrimPrefix(pkg, module+"/"); exists(dir + "/go.mod") { // a module of its own
			cmd.Dir = dir
		}
		out, err := cmd.Output()
		if err != nil {
			fmt.Println("deps: go list -deps", pkg, err)
			os.Exit(1)
		}
		all = append(all, strings.Fields(string(out))...)
	}
	return all
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
