package conformance

import (
	"errors"
	"strings"

	"github.com/elector-go/elector/backends"
)

// bad/name: a name that is not valid in every store is refused before any
// request, and no name reaches another election's record.
func badNames(s *suite) {
	all := s.handles(2)
	present := s.swap(all[0], s.name, backends.Record{}, acquisition("bystander", 1))
	s.independent(all)
	s.shows(all, s.name, present, "elections with similar names have separate records")
	for _, name := range unusable(s.name) {
		for _, b := range all {
			s.refusesName(b, name)
		}
	}
	s.shows(all, s.name, present, "a call with a refused name must not change another election's record")
}

// unusable returns names that no election may have.
func unusable(n string) []string {
	return []string{
		"", ".", "..", "...", "." + n, "../" + n, "./" + n, n + "/", "/" + n, n + "/.", n + "/../" + n, "a/b", `a\b`, `..\` + n,
		n + "\x00", n + "\x00b", "\x00", n + "\n", "\n" + n, n + "\r\n", " " + n, n + " ", n + "\t", " ",
		n + "%", n + "*", n + "?", "[" + n + "]", "{" + n + "}", "~", "~" + n, "$HOME", "`id`", "$(id)", n + "&", n + "#", n + ":", "C:" + n, "a+b", "a,b", "a=b", "a@b", "%2e%2e", n + "%00",
		n + "'", `"` + n + `"`, n + "'; drop table elector; --", n + "' or '1'='1", n + "/*", n + "$1",
		"é" + n, "e\u0301" + n, "東京", "\ufeff" + n, n + "\u200b", "\xff" + n, n + "\xc3", "\u017f" + n, "\u212a" + n, // the last two fold to s and k
		strings.Repeat("a", backends.MaxName+1), strings.Repeat("a", 10<<10), n + strings.Repeat("é", 5<<10),
	}
}

// refusesName makes every call with a bad name.
func (s *suite) refusesName(b backends.Backend, name string) {
	const rule = "a name that backends.CheckName refuses is ErrName in every call (backends.Base checks names; a backend without it calls CheckName first)"
	if r, err := s.tryLoad(b, name); !errors.Is(err, backends.ErrName) {
		s.Fatalf("%s: Load of %s returned %v and error %v", rule, quote(name), r, err)
	}
	if r, err := s.trySwap(b, name, backends.Record{}, acquisition("holder", 1)); !errors.Is(err, backends.ErrName) {
		s.Fatalf("%s: Swap of %s returned %v and error %v", rule, quote(name), r, err)
	}
	if w, ok := backends.AsWatcher(b); ok {
		s.watchRefuses(w, name, backends.ErrName)
	}
}

// independent writes elections whose names a path, a prefix, a pattern, a
// collation or a suffix of the adapter could mix up.
func (s *suite) independent(all []backends.Backend) {
	long := s.name + strings.Repeat("x", backends.MaxName-len(s.name)-1)
	names := []string{long + "a", long + "b", long, s.name[:len(s.name)-1], s.name + "0", "-" + s.name, "--" + s.name, "_" + s.name,
		s.name + ".", s.name + "..", s.name + "-", s.name + "_", s.name + ".json", s.name + ".lock", s.name + ".tmp", s.name + ".json.lock", s.name + ".0"}
	var here []string
	records := map[string]backends.Record{}
	for i, name := range append(names, strings.ToUpper(s.name), strings.ToUpper(s.name[:1])+s.name[1:]) {
		r, err := s.trySwap(all[0], name, backends.Record{}, acquisition(name, uint64(i+1)))
		if err != nil && i >= len(names) {
			// A file system may ignore case. Then the second name is refused.
			if _, err := s.tryLoad(all[1], name); !errors.Is(err, backends.ErrForeignRecord) {
				s.Errorf("names that differ in case alone are two elections, or the second is refused as foreign: Load of %q: %v", name, err)
			}
			continue
		}
		s.must(err, "elections with similar names have separate records: Swap of %q", name)
		here, records[name] = append(here, name), r
	}
	for _, changed := range here {
		records[changed] = s.swap(all[1], changed, records[changed], renewal(records[changed]))
		for _, name := range here {
			s.shows(all[:1], name, records[name], "elections with similar names have separate records: after a change of "+changed)
		}
	}
}
