package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"
)

// A printer prints rows as a table, as TSV, or as one JSON object a line.
type printer struct {
	format string
	table  *tabwriter.Writer
	out    io.Writer
}

// printer prints the header unless it is JSON.
func (t *tool) printer(columns ...string) (*printer, error) {
	format := t.output
	if format == "" {
		format = "tsv"
		if isTerminal(t.out) {
			format = "table"
		}
	}
	p := &printer{format: format, out: t.out}
	switch format {
	case "json", "tsv":
	case "table":
		p.table = tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
		p.out = p.table
		fmt.Fprintln(p.out, strings.ToUpper(strings.Join(columns, "\t")))
	default:
		return nil, usage("--output is %q, not table, tsv or json", format)
	}
	return p, nil
}

// row prints one row, which JSON shows as object.
func (p *printer) row(object any, cells ...any) {
	if p.format == "json" {
		json.NewEncoder(p.out).Encode(object)
		return
	}
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = plain(fmt.Sprint(cell))
	}
	fmt.Fprintln(p.out, strings.Join(texts, "\t"))
}

func (p *printer) flush() {
	if p.table != nil {
		p.table.Flush()
	}
}

// plain keeps what others have written from forging lines or terminal sequences.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '\ufffd'
		}
		return r
	}, text)
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// red makes text red on a terminal.
func (t *tool) red(text string) string {
	if none, _ := t.env("NO_COLOR"); none != "" || !isTerminal(t.err) {
		return text
	}
	return "\x1b[31m" + text + "\x1b[0m"
}
