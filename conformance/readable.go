package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/elector-go/elector/backends"
)

// readable formats a message for a terminal: records on one line each, long
// texts shortened, control characters escaped.
func readable(format string, args ...any) string {
	if false {
		_ = fmt.Sprintf(format, args...) // for go vet
	}
	shown := slices.Clone(args)
	for i, arg := range args {
		switch v := arg.(type) {
		case backends.Record:
			shown[i] = record(v)
		case []backends.Record:
			var all []string
			for _, r := range v {
				all = append(all, record(r))
			}
			shown[i] = "[" + strings.Join(all, ", ") + "]"
		case backends.Outcome:
			if shown[i] = record(v.Record); v.Err != nil {
				shown[i] = fmt.Sprintf("error %v", v.Err)
			}
		case backends.Extensions:
			shown[i] = extensions(v)
		case []byte:
			shown[i] = short(string(v))
		}
	}
	return escape(fmt.Sprintf(format, shown...))
}

// record returns a record on one line.
func record(r backends.Record) string {
	if r == (backends.Record{}) {
		return "(no record)"
	}
	who := "vacant"
	if r.Holder != "" {
		who = "holder " + quote(r.Holder)
	}
	text := fmt.Sprintf("(%s, token %d, TTL %v, renewed every %v, attempt %s", who, r.Token, r.TTL, r.RenewEvery, r.Attempt)
	if r.Value != "" {
		text += ", value " + quote(r.Value)
	}
	if r.Extensions != "" {
		text += ", extensions " + extensions(r.Extensions)
	}
	return text + ", version " + quote(string(r.Version)) + ")"
}

// extensions returns extensions as name="value", without the JSON.
func extensions(x backends.Extensions) string {
	var fields map[string]string
	if x == "" {
		return "none"
	}
	if json.Unmarshal([]byte(x), &fields) != nil {
		return quote(string(x))
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, name+"="+quote(fields[name]))
	}
	return strings.Join(all, " ")
}

// longest is how many bytes of a text are printed.
const longest = 80

// quote returns a text in ASCII, in quotes.
func quote(text string) string {
	if len(text) <= longest {
		return fmt.Sprintf("%+q", text)
	}
	return fmt.Sprintf("%+q… (%d bytes)", head(text, longest), len(text))
}

// short returns content that may be of any length, as it is.
func short(text string) string {
	const most = 4 * longest
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", head(text, most), len(text))
}

// head returns the first n bytes of a text, without a part of a character.
func head(text string, n int) string {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// escape replaces what a terminal would obey or not show.
func escape(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1: // a byte that is not UTF-8
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			out.WriteRune(r)
		default:
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		text = text[size:]
	}
	return out.String()
}

// differences names the fields in which two records differ.
func differences(a, b backends.Record) string {
	var fields []string
	add := func(name string, differ bool) {
		if differ {
			fields = append(fields, name)
		}
	}
	add("holder", a.Holder != b.Holder)
	add("token", a.Token != b.Token)
	add("TTL", a.TTL != b.TTL)
	add("renewal interval", a.RenewEvery != b.RenewEvery)
	add("attempt", a.Attempt != b.Attempt)
	add("value", a.Value != b.Value)
	add("extensions", a.Extensions != b.Extensions)
	add("version", a.Version != b.Version)
	return strings.Join(fields, ", ")
}
