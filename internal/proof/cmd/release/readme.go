package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	getLine  = regexp.MustCompile("(?m)^ *(go get .*)$")
	goBlock  = regexp.MustCompile("(?s)```go\n(import \\(.*?\n\\)\n)(.*?)```")
	goLine   = regexp.MustCompile(`(?m)^go (\d+\.\d+)`)
	sentLine = "invoice 0 sent with token"
)

// around is the program around the lines of the README.
const around = `package main

%s
import (
	"context"
	"fmt"
	"log"
	"os"

	_ "github.com/elector-go/elector/backends/file"
)

func main() {
	if err := lead(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func due(context.Context) int { return 1 }

func send(_ context.Context, invoice int, token elector.Token) {
	fmt.Println("invoice", invoice, "sent with token", token)
}

func lead(ctx context.Context) error {
%s}
`

// readme does what the README says before its first heading, with a folder as
// the store, and checks the versions of Go that it names.
func (u *user) readme() error {
	content, err := os.ReadFile(filepath.Join(u.clone, "README.md"))
	if err != nil {
		return err
	}
	beginning, _, _ := strings.Cut(string(content), "\n## ")
	get, code := getLine.FindStringSubmatch(beginning), goBlock.FindStringSubmatch(beginning)
	if get == nil || code == nil {
		return errors.New("the README does not begin with a line go get and a block of Go with its imports")
	}
	said, err := u.program(fmt.Sprintf(around, code[1], code[2]), strings.Fields(get[1])...)
	if err != nil {
		return fmt.Errorf("the README's program: %w", err)
	}
	if !strings.Contains(said, sentLine) {
		return fmt.Errorf("the README's program printed %q, and not %q", said, sentLine)
	}
	for _, file := range []string{"go.mod", "internal/proof/go.mod"} {
		gomod, err := os.ReadFile(filepath.Join(u.clone, file))
		if err != nil {
			return err
		}
		version := goLine.FindStringSubmatch(string(gomod))
		if version == nil || !strings.Contains(string(content), "Go "+version[1]) {
			return fmt.Errorf("the README does not name the Go of %s, %v", file, version)
		}
	}
	return nil
}
