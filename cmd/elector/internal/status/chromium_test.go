//go:build browser

package status

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A browser is a Chromium with one page, driven through its pipe: JSON that ends with NUL.
type browser struct {
	t       *testing.T
	in      io.Writer
	answers chan answer
	session string
	last    int
	broken  bool // requests may fail, which the console shows
}

type answer struct {
	ID     int
	Method string
	Result json.RawMessage
	Params json.RawMessage
	Error  *struct{ Message string }
}

// open starts Chromium until the test ends. What its console shows is an error.
func open(t *testing.T) *browser {
	t.Helper()
	var program string
	for _, name := range []string{"google-chrome", "chromium-browser", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
		}
	}
	if program == "" {
		t.Fatal("no Chromium here; on Debian: apt-get install chromium")
	}
	args := []string{"--headless", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir=" + t.TempDir()}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	commands, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, args...)
	c.ExtraFiles = []*os.File{commands, answers}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	commands.Close()
	answers.Close()
	b := &browser{t: t, in: in, answers: make(chan answer, 1000)}
	go b.read(out)
	t.Cleanup(func() {
		b.session = ""
		b.call("Browser.close", nil, nil)
		in.Close()
		c.Wait()
	})
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", object{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

type object = map[string]any

func (b *browser) read(out io.Reader) {
	defer close(b.answers)
	var pending []byte
	buffer := make([]byte, 1<<16)
	for {
		n, err := out.Read(buffer)
		pending = append(pending, buffer[:n]...)
		for {
			text, rest, found := bytes.Cut(pending, []byte{0})
			if !found {
				break
			}
			pending = bytes.Clone(rest)
			var a answer
			if json.Unmarshal(text, &a) == nil {
				b.answers <- a
			}
		}
		if err != nil {
			return
		}
	}
}

// call calls a method of the protocol, and takes in what happened meanwhile.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	b.last++
	text, err := json.Marshal(object{"id": b.last, "method": method, "params": params, "sessionId": b.session})
	if b.session == "" {
		text, err = json.Marshal(object{"id": b.last, "method": method, "params": params})
	}
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatal(err)
	}
	timeout := time.After(time.Minute)
	for {
		select {
		case a, ok := <-b.answers:
			switch {
			case !ok:
				b.t.Fatalf("Chromium has ended before it answered %s", method)
			case b.broken && a.Method == "Log.entryAdded" && bytes.Contains(a.Params, []byte(`"source":"network"`)):
			case a.Method == "Runtime.exceptionThrown", a.Method == "Runtime.consoleAPICalled", a.Method == "Log.entryAdded":
				b.t.Errorf("the console shows %s", a.Params)
			case a.ID == b.last && a.Error != nil:
				b.t.Fatalf("%s: %s", method, a.Error.Message)
			case a.ID == b.last:
				if result != nil {
					if err := json.Unmarshal(a.Result, result); err != nil {
						b.t.Fatalf("%s: %v", method, err)
					}
				}
				return
			}
		case <-timeout:
			b.t.Fatalf("Chromium does not answer %s", method)
		}
	}
}

// visit opens a page in a width, light or dark.
func (b *browser) visit(url string, width int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", object{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}, nil)
	b.call("Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.leave() // a URL that differs in its fragment alone would not be loaded again
	b.call("Page.navigate", object{"url": url}, nil)
}

// leave closes the page, whose server ends.
func (b *browser) leave() { b.call("Page.navigate", object{"url": "about:blank"}, nil) }

// eval returns what an expression is on the page.
func (b *browser) eval(expression string, into any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", object{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if err := json.Unmarshal(r.Result.Value, into); err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// await waits until an expression is true.
func (b *browser) await(expression string) {
	b.t.Helper()
	is := false
	b.eval(fmt.Sprintf(`new Promise(done => {
		const end = Date.now() + 30000;
		const look = () => { let is = false; try { is = Boolean(%s); } catch {} if (is || Date.now() > end) done(is); else setTimeout(look, 20); };
		look();
	})`, expression), &is)
	if !is {
		var text string
		b.eval("document.body ? document.body.innerText.slice(0, 2000) : ''", &text)
		b.t.Fatalf("not so after half a minute: %s\n%s", expression, text)
	}
}

// shot takes a picture, if one is wanted.
func (b *browser) shot(name string) {
	b.t.Helper()
	if *shots == "" {
		return
	}
	var r struct{ Data string }
	b.call("Page.captureScreenshot", nil, &r)
	picture, err := base64.StdEncoding.DecodeString(r.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(*shots, name+".png"), picture, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
