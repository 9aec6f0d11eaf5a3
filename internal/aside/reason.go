package aside

import "strings"

// Reason returns the text of an error without the words that have a digit: times, ports and the
// ids of requests differ between errors that have one reason, and are logged once.
func Reason(text string) string {
	var b strings.Builder
	word := func(c byte) bool {
		return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && word(text[end]) {
			end++
		}
		if !strings.ContainsAny(text[i:end], "0123456789") {
			b.WriteString(text[i:end])
		}
		if end < len(text) {
			b.WriteByte(text[end])
			end++
		}
		i = end
	}
	return b.String()
}
