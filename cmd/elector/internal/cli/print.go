package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// formats are what --output may be.
var formats = []string{"table", "tsv", "json"}

// format returns the form of the output: as --output says, or else a table on a
// terminal and TSV elsewhere.
func (t *tool) format() (string, error) {
	switch t.output {
	case "":
		if isTerminal(t.out) {
			return "table", nil
		}
		return "tsv", nil
	case "table", "tsv", "json":
		return t.output, nil
	}
	return "", usage("--output is %q, not table, tsv or json", t.output)
}

// A printer prints rows as a table with a header, as TSV without one, or as one
// JSON object a line.
type printer struct {
	format string
	out    io.Writer
	rows   [][]string // of a table, not yet printed
	widths []int      // of its columns; those of a stream only grow
	err    error      // the first of writing
}

func (t *tool) printer(columns ...string) (*printer, error) {
	format, err := t.format()
	if err != nil {
		return nil, err
	}
	p := &printer{format: format, out: t.out, widths: make([]int, len(columns))}
	if format == "table" {
		p.rows = [][]string{strings.Fields(strings.ToUpper(strings.Join(columns, " ")))}
	}
	return p, nil
}

// row prints one row, which JSON shows as object.
func (p *printer) row(object any, cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = plain(fmt.Sprint(cell))
	}
	switch p.format {
	case "json":
		p.line(marshal(object))
	case "table":
		p.rows = append(p.rows, texts)
	default:
		p.line(strings.Join(texts, "\t"))
	}
}

func (p *printer) line(text string) {
	if _, err := fmt.Fprintln(p.out, text); p.err == nil {
		p.err = err
	}
}

// flush prints the rows that a table has kept back to align them, and returns the
// first error of writing.
func (p *printer) flush() error {
	for _, row := range p.rows {
		for i, cell := range row {
			p.widths[i] = max(p.widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range p.rows {
		line := ""
		for i, cell := range row {
			line += fmt.Sprintf("%-*s  ", p.widths[i], cell)
		}
		p.line(strings.TrimRight(line, " "))
	}
	p.rows = nil
	if p.err != nil {
		return fmt.Errorf("writing the output: %w", p.err)
	}
	return nil
}

// plain keeps what others have written from forging lines or terminal sequences:
// control and format characters, such as those that turn the direction of text.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return '\ufffd'
		}
		return r
	}, text)
}

// marshal returns the object as JSON in which the characters that plain replaces
// are escaped: a terminal obeys some that JSON allows.
func marshal(object any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(object); err != nil {
		panic(err) // text, numbers and truth values always marshal
	}
	var escaped strings.Builder
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		switch {
		case unicode.IsGraphic(r):
			escaped.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&escaped, `\u%04x\u%04x`, high, low)
		}
	}
	return escaped.String()
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// The colours of a terminal.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// colour colours text that goes to a terminal, unless NO_COLOR is set.
func (t *tool) colour(to io.Writer, colour, text string) string {
	none, _ := t.env("NO_COLOR")
	kind, _ := t.env("TERM")
	if none != "" || kind == "dumb" || !isTerminal(to) {
		return text
	}
	return colour + text + "\x1b[0m"
}
