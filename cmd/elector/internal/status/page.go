package status

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
)

//go:embed page.html
var page string

// policy allows the page's own style, script and icon, requests to this server, and
// nothing else.
var policy = "default-src 'none'; connect-src 'self'; img-src data:; style-src " + hash("style") + "; script-src " + hash("script") +
	"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// hash names the content of the page's element, for the policy.
func hash(element string) string {
	_, rest, _ := strings.Cut(page, "<"+element+">")
	content, _, found := strings.Cut(rest, "</"+element+">")
	if !found {
		panic("elector: the page has no " + element)
	}
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func servePage(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	io.WriteString(w, page)
}
