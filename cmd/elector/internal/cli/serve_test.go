package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	_ "github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/cmd/elector/internal/status"
)

// serving is a tool that runs elector serve, and its diagnostics.
type serving struct {
	url   string
	lines chan string
	code  chan int
	stop  context.CancelFunc
}

func serveIn(t *testing.T, url string, args ...string) *serving {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	s := &serving{lines: make(chan string, 100), code: make(chan int, 1), stop: stop}
	tool := &tool{in: os.Stdin, out: io.Discard, err: w, env: func(name string) (string, bool) { return url, name == "ELECTOR_URL" }}
	go func() {
		s.code <- tool.main(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
		w.Close()
	}()
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := r.Read(b)
			if err != nil {
				close(s.lines)
				return
			}
			s.lines <- string(b[:n])
		}
	}()
	first := <-s.lines
	_, s.url, _ = strings.Cut(strings.TrimSuffix(first, " until it is stopped\n"), "serves ")
	return s
}

func TestServe(t *testing.T) {
	s := serveIn(t, "memory://serve", "x", "y")
	defer s.stop()
	get := func(path, host string, want int) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err != nil || a.StatusCode != want {
			t.Errorf("GET %s: %d %s %v, want %d", path, a.StatusCode, body, err, want)
		}
		return string(body)
	}
	if page := get("", "", 200); !strings.Contains(page, "<title>Elections</title>") {
		t.Errorf("the page is %.80q", page)
	}
	var all struct{ Elections []struct{ Election string } }
	if err := json.Unmarshal([]byte(get("elections", "localhost:8080", 200)), &all); err != nil || len(all.Elections) != 2 {
		t.Errorf("%+v %v", all, err)
	}
	for _, host := range []string{"evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example", "evil.example@127.0.0.1"} {
		get("elections", host, 421)
	}
	get("healthz", "[::1]", 200)
	s.stop()
	if code := <-s.code; code != 0 {
		t.Errorf("told to stop, serve ends with %d, want 0", code)
	}
	for line := range s.lines {
		t.Errorf("printed %s", line)
	}
	if c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/")); err == nil {
		c.Close()
		t.Error("still listens")
	}
	http.DefaultClient.CloseIdleConnections()
}

// The passwords of several stores can be rotated while serve runs.
func TestServeReadsItsFileAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "urls")
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	signsIn.Store(nil)
	write("memory://a x\nsigning://u:old@host y\n")
	s := serveIn(t, "", "--url-file", file)
	defer func() { s.stop(); <-s.code }()
	for signsIn.Load() == nil {
		runtime.Gosched()
	}
	login := *signsIn.Load()
	for content, want := range map[string]string{
		"memory://a x\n# rotated\nsigning://u:new@host y\n": "new",
		"memory://a x\n": "has 1 stores now, and had 2",
		"memory://a x\nsigning://u:new@other y\n": "another store",
	} {
		write(content)
		if _, password, err := login(); password != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: it signs in with %q, %v", content, password, err)
		}
	}
}

func TestServeRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		url, args, want string
	}{
		{"", "x", "no store: set ELECTOR_URL"},
		{"memory://", "", "has no elections to watch: name them, or give --all"},
		{"memory://", "x/y", "unusable election name"},
		{"memory://", "x --listen " + taken.Addr().String(), "address already in use; choose another address with --listen"},
		{"memory://", "x --listen nonsense", "choose another address with --listen"},
		{"memory://", "x --every 1ms", "--every is 1ms, less than 100ms"},
		{"memory://", "x --reads 0", "--reads is 0, not between 1 and 1000"},
		{"memory://", "x --url-file /nowhere/at/all", "reading the stores' URLs"},
		{"mmeory://", "x --listen 127.0.0.1:0", "unknown store URL scheme"},
	} {
		t.Run(c.url+" "+c.args, func(t *testing.T) {
			var out bytes.Buffer
			tool := &tool{in: os.Stdin, out: io.Discard, err: &out, env: func(name string) (string, bool) { return c.url, name == "ELECTOR_URL" && c.url != "" }}
			code := tool.main(t.Context(), append([]string{"serve"}, strings.Fields(c.args)...))
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if last := lines[len(lines)-1]; code != exitUsage || !strings.HasPrefix(last, "elector: ") || !strings.Contains(last, c.want) {
				t.Errorf("%d %s, want %d %s", code, &out, exitUsage, c.want)
			}
		})
	}
}

func TestStoresOfFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "urls")
	vacant := ""
	read := func(content string, all bool, names ...string) ([]status.Store, error) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return (&tool{urlFile: file, env: os.LookupEnv}).stores(names, all, vacant)
	}
	got, err := read("# a fleet\n\n  memory://a x y\r\n\tmemory://b\n#memory://c z", false, "n")
	want := []status.Store{{URL: "memory://a", Elections: []string{"x", "y"}}, {URL: "memory://b", Elections: []string{"n"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	if got, err := read("memory://a", true); err != nil || len(got) != 1 || len(got[0].Elections) != 0 {
		t.Errorf("--all: %v %v", got, err)
	}
	vacant = "n*,"
	got, err = read("memory://a x vacant-ok=x,y* vacant-ok=z\nmemory://b vacant-ok=*", false, "n")
	want = []status.Store{{URL: "memory://a", Elections: []string{"x"}, VacantOK: []string{"x", "y*", "z", "n*"}}, {URL: "memory://b", Elections: []string{"n"}, VacantOK: []string{"*", "n*"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	for content, want := range map[string]string{
		"memory://a x vacant-ok=[":    "the pattern \"[\" of vacant-ok",
		"":                            "contains no URL",
		"# nothing\n":                 "contains no URL",
		"memory://a x\nmemory://b":    "store 2 of 2 has no elections",
		"memory://a ../../etc/passwd": "unusable election name",
	} {
		if _, err := read(content, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
}

func TestExposed(t *testing.T) {
	if text := exposed(&net.TCPAddr{IP: net.IPv4zero, Port: 80}); !strings.Contains(text, "no authentication") || !strings.Contains(text, "0.0.0.0:80") {
		t.Error(text)
	}
}
