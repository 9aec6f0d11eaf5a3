package backends

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Extensions are named texts that a record holds besides its fields. They let two
// versions of this library share an election, and let a process that does not
// lead send a request to the leader. The first letter of a name is its class. The
// class decides what a version does that does not know the name:
//
//   - c_ is critical: that version never claims or overwrites such a record, nor
//     reports it as lapsed. Only an acquisition or a release writes it.
//   - k_ is kept: every write of the record passes it on.
//   - t_ belongs to the term: renewals pass it on, acquisitions and releases
//     drop it, except what they know: a release passes on who should lead next.
//
// Only the holder changes the other fields of its record, the attempt included.
// Another process changes one extension and nothing else, and includes a random
// part in the value, so that no state of the record ever comes back. Where a
// request to resign finds no room, it empties the history and then the successor.
//
// The zero value has no extensions. Equal Extensions are equal strings: the text
// is a JSON object of strings with its names in order, as encoding/json writes
// it.
type Extensions string

// MaxExtensions bounds the bytes of all names and values of a record's
// extensions.
const MaxExtensions = 2 << 10

var extensionName = regexp.MustCompile(`^[ckt]_[a-z_]{1,30}$`)

// ParseExtensions returns the extensions with the text s. It returns
// ErrForeignRecord for any other text: a malformed name, a value that is not a
// string, repeated or unordered names, more than MaxExtensions bytes.
func ParseExtensions(s string) (Extensions, error) {
	if s == "" {
		return "", nil
	}
	if len(s) > maxEncoded {
		return "", Foreign("its extensions have %d bytes", len(s))
	}
	fields := map[string]string{}
	d := json.NewDecoder(strings.NewReader(s))
	if err := d.Decode(&fields); err != nil {
		return "", Foreign("its extensions are not a JSON object of texts")
	}
	x, err := extensionsOf(fields)
	if err == nil && string(x) != s {
		err = Foreign("its extensions are not in order, or not as this library writes them")
	}
	if err != nil {
		return "", err
	}
	return x, nil
}

// extensionsOf checks names and sizes.
func extensionsOf(fields map[string]string) (Extensions, error) {
	if len(fields) == 0 {
		return "", nil
	}
	size := 0
	for name, value := range fields {
		if !extensionName.MatchString(name) {
			return "", Foreign("it has a field %.40q, which is neither one of a record nor an extension", name)
		}
		if !ValidText(value) {
			return "", Foreign("its extension %q is not UTF-8, or has a NUL", name)
		}
		size += len(name) + len(value)
	}
	if size > MaxExtensions {
		return "", Foreign("its extensions have %d bytes, more than %d", size, MaxExtensions)
	}
	b, err := json.Marshal(fields) // in order
	if err != nil {
		panic(err) // strings always marshal
	}
	return Extensions(b), nil
}

// all returns the extensions by their names.
func (x Extensions) all() map[string]string {
	fields := map[string]string{}
	if x != "" {
		if err := json.Unmarshal([]byte(x), &fields); err != nil || fields == nil {
			return map[string]string{} // Validate refuses it
		}
	}
	return fields
}

// Get returns the value of an extension, and whether there is one.
func (x Extensions) Get(name string) (value string, ok bool) {
	// A quote within a value has a backslash before it, so this is no part of a value.
	_, rest, ok := strings.Cut(string(x), `"`+name+`":"`)
	if !ok {
		return "", false
	}
	escaped := false
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			if escaped {
				return unescape(rest[:i])
			}
			return rest[:i], true
		}
	}
	return "", false // Validate refuses it
}

// unescape returns the text of a JSON string without its quotes.
func unescape(s string) (text string, ok bool) {
	err := json.Unmarshal([]byte(`"`+s+`"`), &text)
	return text, err == nil
}

// has reports whether there is an extension of that name.
func (x Extensions) has(name string) bool { return strings.Contains(string(x), `"`+name+`":"`) }

// mayHave reports whether a name may begin with the text, without parsing.
func (x Extensions) mayHave(text string) bool { return strings.Contains(string(x), `"`+text) }

// With returns a copy in which one extension is set. It returns
// ErrForeignRecord if no record may have those extensions.
func (x Extensions) With(name, value string) (Extensions, error) {
	fields := x.all()
	fields[name] = value
	return extensionsOf(fields)
}

// Without returns a copy without one extension.
func (x Extensions) Without(name string) Extensions {
	if !x.mayHave(name) {
		return x
	}
	fields := x.all()
	delete(fields, name)
	rest, _ := extensionsOf(fields) // fewer than were valid
	return rest
}

// Names reports whether x has all names of y.
func (x Extensions) Names(y Extensions) bool {
	if y == "" {
		return true
	}
	fields := x.all()
	for name := range y.all() {
		if _, ok := fields[name]; !ok {
			return false
		}
	}
	return true
}

// Class returns the extensions whose names begin with the letter.
func (x Extensions) Class(letter byte) Extensions {
	if !x.mayHave(string(letter) + "_") {
		return ""
	}
	fields := x.all()
	maps.DeleteFunc(fields, func(name, _ string) bool { return !strings.HasPrefix(name, string(letter)) })
	some, _ := extensionsOf(fields) // fewer than were valid
	return some
}

// Critical returns the name of a critical extension that is not among the known
// ones, or "".
func (x Extensions) Critical(known ...string) string {
	critical := strings.Count(string(x), `"c_`) // at most: values may have it too
	for _, name := range known {
		if critical > 0 && strings.HasPrefix(name, "c") && x.has(name) {
			critical--
		}
	}
	if critical == 0 { // nothing is left to parse for
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(x.all())) {
		if strings.HasPrefix(name, "c") && !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}

// validate returns ErrForeignRecord unless ParseExtensions takes the text.
func (x Extensions) validate() error {
	_, err := ParseExtensions(string(x))
	return err
}

// join returns a JSON object with the extensions at its end.
func (x Extensions) join(object []byte) []byte {
	if x == "" {
		return object
	}
	return fmt.Appendf(object[:len(object)-1], ",%s", x[1:])
}
