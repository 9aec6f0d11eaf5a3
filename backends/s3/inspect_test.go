package s3

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// Inspect finds what costs money, and what deletes records.
func TestInspect(t *testing.T) {
	const on = "<Status>Enabled</Status>"
	for _, c := range []struct{ versioning, rule, wrong string }{
		{"", "", ""},
		{"<Status>Suspended</Status>", "", ""},
		{on, "", "object versioning"},
		{"", on + "<Filter><Prefix></Prefix></Filter><Expiration><Days>1</Days></Expiration>", "lifecycle rules"},
		{"", on + "<Filter></Filter><Expiration><Days>1</Days></Expiration>", "lifecycle rules"},
		{"", on + "<Prefix>elector/a</Prefix><Expiration><Days>1</Days></Expiration>", "lifecycle rules"},
		{"", on + "<Filter><And><Prefix>elector/</Prefix><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan></And></Filter><Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>", "lifecycle rules"},
		{"", on + "<Filter><Prefix>logs/</Prefix></Filter><Expiration><Days>1</Days></Expiration>", ""},
		{"", on + "<Filter><Tag><Key>a</Key><Value>b</Value></Tag></Filter><Expiration><Days>1</Days></Expiration>", ""},
		{"", on + "<Filter></Filter><Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>", ""},
		{"", on + "<Filter></Filter><NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>", ""},
		{"", "<Status>Disabled</Status><Filter></Filter><Expiration><Days>1</Days></Expiration>", ""},
	} {
		s := newService(t)
		s.Instead("versioning=", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<VersioningConfiguration>"+c.versioning+"</VersioningConfiguration>")
		})
		s.Instead("lifecycle=", refusal(404, "NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist"))
		if c.rule != "" {
			s.Instead("lifecycle=", func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, "<LifecycleConfiguration><Rule>"+c.rule+"</Rule></LifecycleConfiguration>")
			})
		}
		for how, b := range s.handles(t) {
			i, err := b.(backends.Inspector).Inspect(t.Context(), 15*time.Second)
			if err != nil || time.Since(i.Clock).Abs() > time.Hour || len(i.Findings) != 3 {
				t.Fatalf("%s: %+v, error %v", how, i, err)
			}
			found := ""
			for _, f := range i.Findings {
				if f.Fix != "" {
					found += f.What
				}
			}
			if found != c.wrong {
				t.Errorf("%s: with %s%s it finds %q, want %q", how, c.versioning, c.rule, found, c.wrong)
			}
		}
	}
}

// What it may not see it leaves out, and it finds that the credentials may not write.
func TestInspectWithLittle(t *testing.T) {
	s := newService(t)
	for _, what := range []string{".probe", "versioning=", "lifecycle="} {
		s.Instead(what, refusal(403, "AccessDenied", "Access Denied"))
	}
	for how, b := range s.handles(t) {
		i, err := b.(backends.Inspector).Inspect(t.Context(), 15*time.Second)
		if err != nil || len(i.Findings) != 1 || i.Findings[0].What != "conditional writes" || i.Findings[0].Fix == "" {
			t.Errorf("%s: %+v, %v", how, i, err)
		}
	}
}
