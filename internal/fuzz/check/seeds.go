package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// Good is a valid record.
func Good() backends.Record {
	return backends.Record{Holder: "host-1", Token: 5, TTL: 15 * time.Second, RenewEvery: 4500 * time.Millisecond,
		Attempt: backends.Attempt{Nonce: "NONCE", Sequence: 3}, Value: "10.0.0.1:80"}
}

// Contents are what may be found in the place of a record: a valid one, some at
// the bounds, and the bad ones of the suite in package conformance, except for
// the long ones: the fuzzer would spend its time on copies of them.
func Contents() [][]byte {
	good := backends.Encode(Election, Good())
	edge := Good()
	edge.Holder, edge.Value = "", strings.Repeat("\x01", backends.MaxText)
	edge.Token, edge.TTL, edge.RenewEvery = backends.MaxToken, backends.MaxTTL, backends.MaxTTL-1
	edge.Attempt = backends.Attempt{Nonce: strings.Repeat("Z", backends.MaxNonce), Sequence: 1<<64 - 1}
	shortest := Good()
	shortest.TTL, shortest.RenewEvery = 2, 1
	edge.Extensions = backends.Extensions(`{"k_a":"` + strings.Repeat("x", backends.MaxExtensions-len("k_a")) + `"}`)
	all := [][]byte{good, backends.Encode(Election, edge), backends.Encode(Election, shortest), backends.Encode("another", Good())}
	for _, s := range []string{"", "leader=host-1\n", "null", `"leader"`, "{}", "[]", "\x00\x00\x00\x00", `{"schema":1}`, `{"schema":2}`,
		"[" + string(good) + "]", string(good[:len(good)/2]), string(good) + string(good), string(good) + "x", string(good) + "\x00", "x" + string(good), " " + string(good) + "\n",
		strings.ToUpper(string(good)), strings.Replace(string(good), `"holder"`, `"Holder"`, 1),
		strings.Repeat("[", 3000), strings.Repeat(`{"holder":`, 1000)} {
		all = append(all, []byte(s))
	}
	for _, field := range []string{`"token":9`, `"schema":1`, `"tok\u0065n":9`, `"comment":"mine"`, `"lock_delay":"5s"`, `"successor":{"holder":"a","after":["b"]}`} {
		all = append(all, []byte(strings.TrimSuffix(string(good), "}")+","+field+"}"))
	}
	for _, ext := range Extensions()[1:] {
		all = append(all, []byte(strings.TrimSuffix(string(good), "}")+","+strings.TrimPrefix(ext, "{")))
	}
	for _, place := range []string{`{"schema"`, `"holder"`, `"attempt"`, `"value"`} {
		all = append(all, []byte(replaced(string(good), place, strings.Replace(place, `"`, `"k_a":"1","`, 1))))
	}
	for _, c := range []struct {
		field, as string // and as it is in the valid one
		texts     []string
	}{
		{"schema", "1", []string{"2", "0", "-1", "1.5", "1e0", "18446744073709551617", `"1"`, "null", "{}"}},
		{"election", `"` + Election + `"`, []string{`""`, "null", "1"}},
		{"holder", `"host-1"`, []string{`""`, "null", "1", "true", "{}", `["a"]`, `"a\u0000b"`, "\"\xff\xfe\"", `"` + strings.Repeat("h", backends.MaxText+1) + `"`}},
		{"value", `"10.0.0.1:80"`, []string{`""`, "null", "1", "{}", `"\ud800"`, `"\\u0000"`, `"` + strings.Repeat("[", 300) + `"`, strings.Repeat("[", 300) + strings.Repeat("]", 300)}},
		{"token", "5", []string{"null", `"5"`, "true", "5.0", "5e0", "0", "-1", "9007199254740991", "9007199254740992", "1e400", "18446744073709551616", "[5]"}},
		{"ttl", `"15s"`, []string{`"0s"`, `"0"`, `"-1ns"`, `"24h0m0s"`, `"24h0m0.000000001s"`, `"1000000h"`, `"9223372036854775808ns"`, `""`, `"soon"`, `"15"`, `"+15s"`, `"1e1s"`, "15", "null"}},
		{"renew_every", `"4.5s"`, []string{`"15s"`, `"0s"`, `"-1s"`, `"14.999999999s"`, `"NaN"`, "1", "{}"}},
		{"attempt", `"NONCE.3"`, []string{`""`, `"x"`, `".1"`, `"x."`, `"x.0"`, `"x.-1"`, `"x.+1"`, `"x.01"`, `"x.1.1"`, `"x.18446744073709551616"`, `"` + strings.Repeat("x", backends.MaxNonce+1) + `.1"`, "null", "1"}},
	} {
		is := fmt.Sprintf("%q:%s", c.field, c.as)
		for _, text := range c.texts {
			all = append(all, []byte(replaced(string(good), is, fmt.Sprintf("%q:%s", c.field, text))))
		}
		all = append(all, []byte(strings.NewReplacer(is+",", "", ","+is, "").Replace(string(good))))
	}
	return all
}

// Extensions are texts in the place of a record's extensions: none, valid ones,
// some at the bounds, and bad ones.
func Extensions() []string {
	letters := strings.Repeat("a", 30)
	all := []string{"", `{"k_a":""}`, `{"c_stop":"1","k_history":"2026 host-1","t_bid":"host-2"}`, `{"t_` + letters + `":"1"}`, `{"t_` + letters + `a":"1"}`,
		`{"k_a":"Zürich 東京 😀 \u2028 \u003cb\u003e \\u0000 \u0001"}`, `{"k_a":"` + strings.Repeat("x", backends.MaxExtensions-len("k_a")+1) + `"}`}
	for _, s := range []string{"", `"k_a"`, `"k_a":1`, `"k_a":null`, `"k_a":["x"]`, `"k_a":{"b":"x"}`, `"k_b":"","k_a":""`, `"k_a":"1","k_a":"1"`, `"k_a":"1","k_a":"2"`,
		`"k_":""`, `"k":""`, `"K_a":""`, `"x_a":""`, `"k_A":""`, `"k_a1":""`, `"k_é":""`, `"k-a":""`, `"lock_delay":"5s"`, `"token":"9"`, `"holder":"a"`,
		`"k_a": ""`, ` "k_a":""`, `"k_a":"" `, `"k_a":"<"`, `"k_a":"\u0061"`, `"k_\u0061":""`, `"k_a":"\u0000"`, `"k_a":"\ud800"`, "\"k_a\":\"\xff\"", "\"k_a\":\"\u2028\""} {
		all = append(all, "{"+s+"}")
	}
	return append(all, "null", "[]", `""`, "x", "{", "}", `{"k_a":""}x`, `{"k_a":""}{}`, strings.Repeat(`{"k_a":`, 1000))
}

// replaced panics if there is nothing to replace: the seed would be lost.
func replaced(s, old, new string) string {
	if strings.Count(s, old) != 1 {
		panic("check: the encoding of records has changed; bring the seeds up to date: " + old)
	}
	return strings.Replace(s, old, new, 1)
}

// Names are names of elections, good and bad, each with one that a path, a
// pattern, a suffix or a fold of case could mistake for it.
func Names() [][2]string {
	var all [][2]string
	for _, name := range []string{"a", "A", "a.", "a-", "_a", "-a", "--", "a.json", "a.lock", "a.json.lock", "a.tmp", "leader", "guard-A", "zookeeper", "a..b", strings.Repeat("a", backends.MaxName),
		"", ".", "..", "...", ".tmp-1", "../a", "a/b", "/a", "a/", "a/.", "a/../b", `a\b`, `..\a`, "a\x00", "a\x00b", "a\n", " a", "a ", "a%", "a%2Fb", "%2e%2e", "a*", "a?", "a#", "a:", "C:a", "~", "$HOME",
		"a'", `"a"`, "a'; drop table elector; --", "é", "e\u0301", "\ufeffa", "\xffa", "a\xc3", "\u212a", strings.Repeat("a", backends.MaxName+1)} {
		all = append(all, [2]string{name, "a"}, [2]string{name, name + ".json"})
	}
	return slices.Clip(all)
}

// Usable says what CheckName must say of a name, written another way.
func Usable(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return len(name) >= 1 && len(name) <= 128 && strings.Trim(name, letters) == "" && name[0] != '.' && strings.Count(name, "") == len(name)+1
}
