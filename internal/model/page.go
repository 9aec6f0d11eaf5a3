package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Names of functions on the page, as file:function.
var (
	goName    = regexp.MustCompile("`([\\w/]+\\.go):(\\w+)`")
	modelName = regexp.MustCompile("`(\\w+\\.pml):(\\w+)`")
	inModel   = regexp.MustCompile(`(?m)^(?:inline|active (?:\[\w+\] )?proctype) (\w+)`)
	ifdef     = regexp.MustCompile(`(?m)^#if(?:n?def) (\w+)`)
)

// checkPage checks that what spec/README.md names exists, and that it names
// every step and every mutant of the models.
func checkPage(root string) error {
	page, err := os.ReadFile(filepath.Join(root, "spec", "README.md"))
	if err != nil {
		return err
	}
	errs := []error{namesCode(root, string(page))}
	for _, model := range models {
		text, err := os.ReadFile(filepath.Join(root, "spec", model))
		errs = append(errs, err, namesModel(string(page), model, string(text)))
	}
	return errors.Join(errs...)
}

func namesCode(root, page string) error {
	names := goName.FindAllStringSubmatch(page, -1)
	if len(names) == 0 {
		return errors.New("spec/README.md names no function as `file.go:function`")
	}
	var errs []error
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name[1]), nil, 0)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("spec/README.md names %s: %w", name[1], err))
		case !declares(file, name[2]):
			errs = append(errs, fmt.Errorf("spec/README.md names %s:%s, but that file declares no such function: correct the page, and the model if the protocol has changed", name[1], name[2]))
		}
	}
	return errors.Join(errs...)
}

func declares(file *ast.File, name string) bool {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			return true
		}
	}
	return false
}

func namesModel(page, model, text string) error {
	var errs []error
	onPage, steps := map[string]bool{}, map[string]bool{}
	for _, name := range modelName.FindAllStringSubmatch(page, -1) {
		if name[1] == model {
			onPage[name[2]] = true
		}
	}
	for _, step := range inModel.FindAllStringSubmatch(text, -1) {
		steps[step[1]] = true
		if !onPage[step[1]] {
			errs = append(errs, fmt.Errorf("spec/README.md does not say what code `%s:%s` stands for", model, step[1]))
		}
	}
	for name := range onPage {
		if !steps[name] && !regexp.MustCompile(`\b`+name+`\b`).MatchString(text) {
			errs = append(errs, fmt.Errorf("spec/README.md names %s:%s, which is not there", model, name))
		}
	}
	for _, name := range ifdef.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(page, "`"+name[1]+"`") {
			errs = append(errs, fmt.Errorf("spec/README.md does not name the definition %s of %s", name[1], model))
		}
	}
	return errors.Join(errs...)
}
