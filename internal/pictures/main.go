// Command pictures makes the pictures of the README from real runs: the output of make
// demo as an SVG, and the page of elector serve as a PNG. It needs script of util-linux, and
// Chromium.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/file"
	"github.com/elector-go/elector/operate"
)

func main() {
	dir := flag.String("store", "/var/lib/myservice", "a new directory for the elections of the page; its path is in the picture")
	out := flag.String("out", "docs/pictures", "where the pictures go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := errors.Join(demo(ctx, *out), page(ctx, *dir, *out)); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// demo draws what make demo prints on a terminal.
func demo(ctx context.Context, out string) error {
	c := exec.CommandContext(ctx, "script", "--quiet", "--return", "--command", "go run ./examples/singleton demo", os.DevNull)
	c.Env = append(os.Environ(), "TERM=xterm")
	text, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the demo: %w: %s", err, text)
	}
	printed, explained, _ := strings.Cut(strings.ReplaceAll(string(text), "\r", ""), "\n\nA lease counts")
	_, verdict, _ := strings.Cut(explained, "\n\n")
	lines := strings.Split("$ make demo\n"+printed+"\n\n"+strings.TrimSpace(verdict), "\n")
	return os.WriteFile(filepath.Join(out, "demo.svg"), terminal(lines), 0o644)
}

// sequences are the terminal's, and what an SVG has in their place.
var sequences = strings.NewReplacer(
	"\x1b[0m", "</tspan>", "\x1b[1m", `<tspan fill="#fff" font-weight="bold">`,
	"\x1b[31m", `<tspan fill="#ff7b72">`, "\x1b[32m", `<tspan fill="#7ee787">`, "\x1b[33m", `<tspan fill="#e3b341">`,
)

// terminal draws lines as a terminal shows them.
func terminal(lines []string) []byte {
	const height, top = 19, 34
	var b bytes.Buffer
	size := top + len(lines)*height + 12
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 %d" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" fill="#c9d1d9">`, size)
	fmt.Fprintf(&b, `<rect width="920" height="%d" rx="8" fill="#0d1117"/><circle cx="18" cy="16" r="5" fill="#ff5f57"/><circle cx="36" cy="16" r="5" fill="#febc2e"/><circle cx="54" cy="16" r="5" fill="#28c840"/>`, size)
	for i, line := range lines {
		if line != "" {
			fmt.Fprintf(&b, "\n"+`<text x="16" y="%d" xml:space="preserve">%s</text>`, top+(i+1)*height-5, sequences.Replace(html.EscapeString(line)))
		}
	}
	b.WriteString("\n</svg>\n")
	return b.Bytes()
}

// page takes a picture of elector serve, which watches elections that really run.
func page(ctx context.Context, dir, out string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := os.Mkdir(dir, 0o700); err != nil { // it is removed at the end, so it must be ours
		return err
	}
	defer os.RemoveAll(dir)
	url := "file://" + dir
	b, err := backends.Open(ctx, url)
	if err != nil {
		return err
	}
	defer b.Close()
	var all []*elector.Elector
	defer func() {
		for _, e := range all {
			e.Close()
		}
	}()
	join := func(name, id string) (*elector.Elector, error) {
		e, err := elector.New(b, name, &elector.Options{ID: id, Value: id + ":8080", Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			all = append(all, e)
		}
		return e, err
	}
	leads := map[string]*elector.Elector{}
	for _, x := range []struct{ name, id string }{
		{"billing", "host-1"}, {"compactor", "host-2"}, {"invoices", "host-1"}, {"nightly-report", "host-3"}, {"reminders", "host-2"}, {"scheduler", "host-3"},
	} {
		e, err := join(x.name, x.id)
		if err != nil {
			return err
		}
		if _, err := e.Campaign(ctx); err != nil {
			return err
		}
		leads[x.name] = e
	}
	if err := leads["nightly-report"].Resign(ctx); err != nil {
		return err
	}
	if err := leads["billing"].Resign(ctx); err != nil {
		return err
	}
	alice, err := join("billing", "alice@office")
	if err != nil {
		return err
	}
	if err := alice.Operator().Pause(ctx, operate.Pause{Reason: "migration 42", For: time.Hour}); err != nil {
		return err
	}
	for i, seconds := range []int{4, 9, 3} { // terms of invoices
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		next, err := join("invoices", fmt.Sprintf("host-%d", i%2+2))
		if err != nil {
			return err
		}
		if err := leads["invoices"].ResignTo(ctx, next.ID()); err != nil {
			return err
		}
		if _, err := next.Campaign(ctx); err != nil {
			return err
		}
		leads["invoices"] = next
	}
	waiting, err := join("invoices", "host-1")
	if err != nil {
		return err
	}
	go waiting.Campaign(ctx)
	bob, err := join("scheduler", "bob@office") // whose request the leader's worker does not obey yet
	if err != nil {
		return err
	}
	go bob.Operator().RequestResign(ctx, operate.ResignRequest{To: "host-1"})
	return shoot(ctx, url, filepath.Join(out, "page.png"))
}

// shoot runs elector serve and takes the picture.
func shoot(ctx context.Context, url, file string) error {
	profile, err := os.MkdirTemp("", "pictures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(profile)
	program := filepath.Join(profile, "elector")
	if out, err := exec.CommandContext(ctx, "go", "build", "-C", "cmd/elector", "-o", program, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("building elector: %w: %s", err, out)
	}
	serve := exec.CommandContext(ctx, program, "serve", "--all", "--vacant-ok", "nightly-*", "--listen", "127.0.0.1:0", "--every", "1s")
	serve.Env = append(os.Environ(), "ELECTOR_URL="+url)
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	said, err := serve.StderrPipe()
	if err != nil {
		return err
	}
	if err := serve.Start(); err != nil {
		return err
	}
	ended, cancel := context.WithCancel(ctx)
	defer func() { cancel(); serve.Process.Kill(); serve.Wait() }()
	var text bytes.Buffer
	var address string
	for buffer := make([]byte, 1<<10); address == ""; {
		n, err := said.Read(buffer)
		if err != nil {
			return fmt.Errorf("elector serve: %w: %s", err, &text)
		}
		text.Write(buffer[:n])
		if _, rest, found := strings.Cut(text.String(), "serves "); found {
			address, _, _ = strings.Cut(rest, " ")
		}
	}
	go io.Copy(io.Discard, said)
	select {
	case <-time.After(12 * time.Second): // leaders renew meanwhile
	case <-ended.Done():
	}
	c := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=4000",
		"--window-size=1100,796", "--user-data-dir="+profile, "--screenshot="+file, address+"#invoices")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("chromium: %w: %s", err, out)
	}
	return shrink(file)
}

// shrink leaves a picture its 256 most frequent colours.
func shrink(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	from, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		return err
	}
	counts := map[color.Color]int{}
	area := from.Bounds()
	for y := range area.Dy() {
		for x := range area.Dx() {
			counts[from.At(x, y)]++
		}
	}
	palette := color.Palette(slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] }))
	to := image.NewPaletted(area, palette[:min(256, len(palette))])
	draw.Draw(to, area, from, area.Min, draw.Src)
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, to); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}
