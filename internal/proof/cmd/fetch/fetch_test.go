package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// place puts what looks like a fetched store where it belongs.
var place = map[string]func(t *testing.T){
	"etcd": func(t *testing.T) { placeFile(t, binaries.EtcdPath) },
	"gcs":  func(t *testing.T) { placeFile(t, binaries.FakeGCSPath) },
	"zookeeper": func(t *testing.T) {
		placeFile(t, binaries.JavaPath, "bin", "java")
		for _, class := range binaries.ZooKeeperClasses {
			placeFile(t, binaries.ZooKeeperPath, class)
		}
	},
	"mysql": func(t *testing.T) {
		for _, name := range binaries.MariaDBFiles {
			placeFile(t, binaries.MariaDBPath, name)
		}
	},
	"redis": func(t *testing.T) {
		for _, name := range binaries.RedisFiles {
			placeFile(t, binaries.RedisPath, name)
		}
	},
	"prometheus": func(t *testing.T) {
		placeFile(t, binaries.PrometheusPath, "prometheus")
		placeFile(t, binaries.PrometheusPath, "promtool")
	},
	"dynamodb": func(t *testing.T) {
		placeNode(t)
		placeFile(t, binaries.DynalitePath, binaries.DynaliteScript)
	},
	"consul": func(t *testing.T) { placeFile(t, binaries.ConsulPath) },
	"nats":   func(t *testing.T) { placeFile(t, binaries.NATSPath) },
	"azureblob": func(t *testing.T) {
		placeNode(t)
		placeFile(t, binaries.AzuritePath, binaries.AzuriteScript)
	},
	"s3": func(t *testing.T) {
		placeNode(t)
		placeFile(t, binaries.GoFakeS3Path)
		placeFile(t, binaries.VersityGWPath)
		placeFile(t, binaries.S3rverPath, binaries.S3rverScript)
	},
	"kubernetes": func(t *testing.T) {
		placeFile(t, binaries.EtcdPath)
		placeFile(t, binaries.KubernetesPath)
	},
}

func placeNode(t *testing.T) {
	t.Helper()
	placeFile(t, binaries.NodePath, "bin", "node")
	path, err := binaries.NodePath()
	if err != nil {
		t.Fatal(err)
	}
	placeFile(t, func() (string, error) { return binaries.NPMScript(path), nil })
}

func placeFile(t *testing.T, in func() (string, error), below ...string) {
	t.Helper()
	path, err := in()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(append([]string{path}, below...)...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("a store"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// eachToFetch runs the test for the stores that no machine has installed.
func eachToFetch(t *testing.T, test func(t *testing.T, kind string, fetch func(context.Context) (string, error))) {
	for _, f := range fetchers {
		if _, err := exec.LookPath("redis-server"); f.kind == "postgres" || f.kind == "redis" && err == nil {
			continue
		}
		t.Run(f.kind, func(t *testing.T) {
			t.Setenv(binaries.FolderVariable, t.TempDir())
			test(t, f.kind, f.fetch)
		})
	}
}

func TestWhatIsThereIsLeftAlone(t *testing.T) {
	eachToFetch(t, func(t *testing.T, kind string, fetch func(context.Context) (string, error)) {
		place[kind](t)
		did, err := fetch(t.Context())
		if err != nil || !strings.Contains(did, "there: ") {
			t.Errorf("it says %q, %v", did, err)
		}
	})
}

func TestInterruptedFetchLeavesNothing(t *testing.T) {
	eachToFetch(t, func(t *testing.T, kind string, fetch func(context.Context) (string, error)) {
		temporary := t.TempDir()
		t.Setenv("TMPDIR", temporary)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := fetch(ctx); err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("it says %v", err)
		}
		for _, dir := range []string{os.Getenv(binaries.FolderVariable), temporary} {
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left are %v, %v", left, err)
			}
		}
	})
}

// A machine that lacks something is told what to do.
func TestMachineWithoutTheTools(t *testing.T) {
	t.Setenv(binaries.FolderVariable, t.TempDir())
	t.Setenv("JAVA_HOME", "")
	tools := t.TempDir()
	t.Setenv("PATH", tools)
	says := func(fetch func(context.Context) (string, error), wants ...string) {
		t.Helper()
		_, err := fetch(t.Context())
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it says %v, want %q", err, want)
			}
		}
	}
	says(fetchZooKeeper, "no apt-get", "install Java 17")
	says(fetchMariaDB, "no apt-get")
	says(fetchRedis, "no apt-get")
	says(fetchPrometheus, "no apt-get")
	tool := func(name, script string) {
		if err := os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tool("java", "echo openjdk 11.0.2 2019-01-15")
	says(fetchZooKeeper, "no apt-get", "install Java 17")
	t.Setenv("JAVA_HOME", filepath.Dir(tools))
	says(fetchZooKeeper, "JAVA_HOME")
	t.Setenv("JAVA_HOME", "")
	tool("java", "echo openjdk 17.0.15 2025-04-15")
	says(fetchZooKeeper, "ELECTOR_TEST_ZOOKEEPER")
	tool("apt-get", `[ "$1" = -o ] || exec echo no such package >&2`+"\nexit 100")
	says(fetchZooKeeper, "ELECTOR_TEST_ZOOKEEPER")
}

func TestJavaVersions(t *testing.T) {
	java := filepath.Join(t.TempDir(), "java")
	for printed, want := range map[string]string{
		"echo openjdk 17.0.15 2025-04-15":                 "",
		"echo java 21 2023-09-19 LTS":                     "",
		"echo openjdk 11.0.2 2019-01-15":                  "is version 11, and ZooKeeper needs 17",
		"echo Unrecognized option: --version >&2; exit 1": "Unrecognized option", // Java 8
		"true": "names no version",
	} {
		if err := os.WriteFile(java, []byte("#!/bin/sh\n"+printed+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		err := checkJava(t.Context(), java)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: it says %v, want %q", printed, err, want)
		}
	}
}

// Links of Debian's package to what it keeps elsewhere become what they name.
func TestSelfContained(t *testing.T) {
	root := t.TempDir()
	home, kept := filepath.Join(root, "usr", "java"), filepath.Join(root, "etc", "java")
	for _, dir := range []string{home, kept} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(kept, "security"), []byte("policy"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"conf": "/etc/java/security", "certificates": "/etc/other/package", "near": "conf"} {
		if err := os.Symlink(target, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := selfContained(home, root); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"conf", "near"} {
		if content, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(content) != "policy" {
			t.Errorf("%s holds %q, %v", name, content, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(home, "certificates")); err == nil {
		t.Error("a link to what is not in the package is left")
	}
}

// Node.js comes from the registry of npm's configuration, and nothing is kept that is
// not the pinned archive.
func TestNodeFromTheRegistry(t *testing.T) {
	if nodePackages[runtime.GOOS+"/"+runtime.GOARCH].name == "" {
		return // no packed Node.js is known for this system, and fetchNode says so
	}
	answers := map[string]http.HandlerFunc{
		"the registry answers 403": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"and not the pinned":       func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "another archive") },
	}
	for want, answer := range answers {
		registry := httptest.NewServer(answer)
		defer registry.Close()
		t.Setenv("NPM_CONFIG_REGISTRY", registry.URL)
		t.Setenv("PATH", t.TempDir())
		dir := t.TempDir()
		t.Setenv(binaries.FolderVariable, dir)
		if _, err := getNode(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %q", err, want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	}
}

// A Node.js of the machine that is too old, or has no npm, is not used.
func TestInstalledNode(t *testing.T) {
	tools := t.TempDir()
	t.Setenv("PATH", tools)
	tool := func(name, prints string) {
		if err := os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\necho "+prints+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	says := func(want string) {
		t.Helper()
		if _, err := installedNode(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %q", err, want)
		}
	}
	says("no node in PATH")
	tool("node", "v18.20.4")
	says("is version v18.20.4")
	tool("node", "v22.1.0")
	says("no npm in PATH")
	tool("npm", "10")
	if n, err := installedNode(t.Context()); err != nil || n.program != filepath.Join(tools, "node") {
		t.Errorf("it is %v, %v", n, err)
	}
}

// A ZooKeeper is taken only if it runs.
func TestBrokenZooKeeper(t *testing.T) {
	java, err := getJava(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(binaries.FolderVariable, t.TempDir())
	place["zookeeper"](t)
	path, err := binaries.ZooKeeperPath()
	if err != nil {
		t.Fatal(err)
	}
	if err := tryZooKeeper(t.Context(), java, path); err == nil || !strings.Contains(err.Error(), binaries.ZooKeeperMain) {
		t.Errorf("archives without classes: %v", err)
	}
	if err := os.Remove(filepath.Join(path, "zookeeper.jar")); err != nil {
		t.Fatal(err)
	}
	if _, err := binaries.ZooKeeper(); err == nil {
		t.Error("an archive is missing, and that is not seen")
	}
}

// The repository names no registry.
func TestPinsNameNoHost(t *testing.T) {
	for server, pinned := range map[string]struct {
		lock    embed.FS
		version string
	}{
		"dynalite": {dynaliteLock, binaries.DynaliteVersion},
		"azurite":  {azuriteLock, binaries.AzuriteVersion},
		"s3rver":   {s3rverLock, binaries.S3rverVersion},
	} {
		for _, name := range []string{"package.json", "package-lock.json"} {
			content, err := pinned.lock.ReadFile(server + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(content), "://") {
				t.Errorf("%s of %s has a URL", name, server)
			}
		}
		content, err := pinned.lock.ReadFile(server + "/package.json")
		if err != nil || !strings.Contains(string(content), `"`+server+`": "`+pinned.version+`"`) {
			t.Errorf("package.json of %s has another version than %s, %v", server, pinned.version, err)
		}
	}
}

func TestLeftoversAreRemovedWhenOld(t *testing.T) {
	dir := t.TempDir()
	old, young := filepath.Join(dir, partial+"old"), filepath.Join(dir, partial+"young")
	for _, path := range []string{old, young} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	removeLeftovers(dir)
	if _, err := os.Stat(old); err == nil {
		t.Error("the old one is there")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
}

func TestUnknownStore(t *testing.T) {
	if err := run(t.Context(), []string{"clay tablets"}); err == nil || !strings.Contains(err.Error(), "etcd, postgres") {
		t.Errorf("it says %v", err)
	}
}

func TestUnpack(t *testing.T) {
	for name, ok := range map[string]bool{
		"package/native/bin/initdb":  true,
		"package/../../etc/passwd":   false,
		"native/bin/initdb":          false,
		"/package/native/bin/initdb": false,
	} {
		dir := t.TempDir()
		archive := filepath.Join(dir, "a.tgz")
		writeArchive(t, archive, name, "content")
		into := filepath.Join(dir, "into")
		if err := unpack(t.Context(), archive, into, nil); (err == nil) != ok {
			t.Errorf("unpacking %s: %v", name, err)
		}
		if !ok {
			continue
		}
		path := filepath.Join(into, "native", "bin", "initdb")
		content, err := os.ReadFile(path)
		if err != nil || string(content) != "content" {
			t.Errorf("it holds %q, %v", content, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o100 == 0 {
			t.Errorf("it is not executable: %v, %v", info, err)
		}
		if err := checkSum(archive, "00"); err == nil || !strings.Contains(err.Error(), "pinned") {
			t.Errorf("with another sum: %v", err)
		}
	}
}

func writeArchive(t *testing.T, path, name, content string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLinks(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "links.json")
	if err := os.MkdirAll(filepath.Join(dir, "native", "lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(content string) {
		if err := os.WriteFile(list, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"source":"native/lib/a.so.1.2","target":"native/lib/a.so.1"}]`)
	if err := link(dir, list); err != nil {
		t.Fatal(err)
	}
	// Relative, so that the folder can be renamed.
	if to, err := os.Readlink(filepath.Join(dir, "native", "lib", "a.so.1")); err != nil || to != "a.so.1.2" {
		t.Errorf("it points to %q, %v", to, err)
	}
	write(`[{"source":"native/lib/a.so.1.2","target":"../a.so.1"}]`)
	if err := link(dir, list); err == nil {
		t.Error("a link outside of the folder is made")
	}
}
