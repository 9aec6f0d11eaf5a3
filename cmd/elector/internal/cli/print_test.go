package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
)

// What others wrote cannot forge lines, columns or terminal sequences, and JSON
// keeps it as it is.
func TestControlCharacters(t *testing.T) {
	hostile := []string{"\x1b[2J", "a\nvacant\tb", "\r", "\u009b2J", "\x7f", "\u202egnirts", "\u2028", "\u200b", "\U000e0001", "\x00", "plain, 東京 é 😀 <&>"}
	for _, format := range formats {
		for _, text := range hostile {
			var out bytes.Buffer
			p, err := (&tool{out: &out, output: format}).printer("value", "more")
			if err != nil {
				t.Fatal(err)
			}
			p.row(map[string]string{"value": text}, text, "end")
			if err := p.flush(); err != nil {
				t.Fatal(err)
			}
			header := ""
			if format == "table" {
				header, _, _ = strings.Cut(out.String(), "\n")
				header += "\n"
			}
			lines := strings.Split(strings.TrimSuffix(strings.TrimPrefix(out.String(), header), "\n"), "\n")
			if len(lines) != 1 {
				t.Errorf("%s: %q makes %d lines", format, text, len(lines))
			}
			for _, r := range lines[0] {
				if r != '\t' && !unicode.IsGraphic(r) {
					t.Errorf("%s: %q prints %q", format, text, lines[0])
				}
			}
			if format == "tsv" && strings.Count(lines[0], "\t") != 1 {
				t.Errorf("%q makes other columns: %q", text, lines[0])
			}
			if format == "json" {
				var back map[string]string
				if err := json.Unmarshal([]byte(lines[0]), &back); err != nil || back["value"] != text {
					t.Errorf("JSON gives %q back as %q: %v", text, back["value"], err)
				}
			}
		}
	}
}

// A table has a header and columns that stand below each other; elsewhere there
// is none.
func TestFormats(t *testing.T) {
	for format, want := range map[string]string{
		"table": "NAME     TOKEN\nshort    1\nlengthy  22\n",
		"tsv":   "short\t1\nlengthy\t22\n",
		"":      "short\t1\nlengthy\t22\n",
		"json":  "{\"name\":\"short\"}\n{\"name\":\"lengthy\"}\n",
	} {
		var out bytes.Buffer
		p, err := (&tool{out: &out, output: format}).printer("name", "token")
		if err != nil {
			t.Fatal(err)
		}
		p.row(map[string]string{"name": "short"}, "short", 1)
		p.row(map[string]string{"name": "lengthy"}, "lengthy", 22)
		if err := p.flush(); err != nil || out.String() != want {
			t.Errorf("%q: %q, want %q, error %v", format, out.String(), want, err)
		}
		// The next rows of a stream stand below the others.
		out.Reset()
		p.row(map[string]string{"name": "x"}, "x", 3)
		p.flush()
		if format == "table" && out.String() != "x        3\n" {
			t.Errorf("a later row: %q", out.String())
		}
	}
}

type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// Output that cannot be written is an error.
func TestOutputFails(t *testing.T) {
	for _, format := range formats {
		p, err := (&tool{out: full{}, output: format}).printer("name")
		if err != nil {
			t.Fatal(err)
		}
		p.row(map[string]string{}, "a")
		if err := p.flush(); !errors.Is(err, errFull) {
			t.Errorf("%s: error %v", format, err)
		}
	}
}
