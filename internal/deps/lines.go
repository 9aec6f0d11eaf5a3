package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"strings"
)

// A count is how many lines files have.
type count struct{ code, comments, blanks int }

func (c *count) add(other count) {
	c.code += other.code
	c.comments += other.comments
	c.blanks += other.blanks
}

// count counts the lines. One with code and a comment counts as code.
func (s source) count() (c count) {
	const (
		comment = 1 + iota
		code
	)
	lines := make([]uint8, bytes.Count(s.text, []byte("\n")))
	var scan scanner.Scanner
	file := token.NewFileSet().AddFile(s.name, -1, len(s.text))
	scan.Init(file, s.text, nil, scanner.ScanComments)
	for {
		at, kind, text := scan.Scan()
		if kind == token.EOF {
			break
		}
		is := uint8(code)
		switch {
		case kind == token.COMMENT:
			is = comment
		case kind == token.SEMICOLON && text == "\n":
			continue
		}
		first := file.Line(at) - 1
		for i := first; i <= first+strings.Count(text, "\n"); i++ {
			lines[i] = max(lines[i], is)
		}
	}
	for _, is := range lines {
		switch is {
		case code:
			c.code++
		case comment:
			c.comments++
		default:
			c.blanks++
		}
	}
	return c
}

// printLines prints how many lines the packages of the core have, without tests.
func printLines(func(string)) error {
	row := func(name string, c count) {
		fmt.Printf("%-18s %6d %9d %7d\n", name, c.code, c.comments, c.blanks)
	}
	fmt.Printf("%-18s %6s %9s %7s\n", "lines of the core", "code", "comments", "blanks")
	var sum count
	for _, dir := range core {
		all, err := sources(dir)
		if err != nil {
			return err
		}
		var c count
		for _, s := range all {
			c.add(s.count())
		}
		sum.add(c)
		row(dir, c)
	}
	row("sum", sum)
	return nil
}
