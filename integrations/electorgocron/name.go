package electorgocron

import (
	"fmt"
	"strings"

	"github.com/elector-go/elector/backends"
)

// election returns the name of the election of a job: the job's name, with an
// underscore and two hexadecimal digits for each byte that no election may have, as in
// "nightly_20report". An underscore that two such digits follow is replaced too, so
// that no two jobs have the same election.
func election(job string) (string, error) {
	var b strings.Builder
	for i := range len(job) {
		c := job[i]
		plain := c == '-' || c == '.' && i > 0 || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
		if c == '_' {
			plain = !(i+2 < len(job) && digit(job[i+1]) && digit(job[i+2]))
		}
		if plain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02X", c)
		}
	}
	if err := backends.CheckName(b.String()); err != nil {
		return "", fmt.Errorf("electorgocron: job %q: %w; give the job another name, with gocron.WithName", job, err)
	}
	return b.String(), nil
}

// digit reports whether c is a digit of those that election writes.
func digit(c byte) bool { return '0' <= c && c <= '9' || 'A' <= c && c <= 'F' }
