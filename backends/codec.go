package backends

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Schema is the number of the record layout that this version writes. A record
// with another number is foreign.
const Schema = 1

// maxEncoded bounds what Decode looks at: more than any valid record takes.
const maxEncoded = 64 << 10

// encoded is the record as JSON, for stores that keep bytes. The name of the
// election is in it, so that a file system that folds case, or a copied object,
// cannot pass one election's record for another's.
type encoded struct {
	Schema     int    `json:"schema"`
	Election   string `json:"election"`
	Holder     string `json:"holder"`
	Token      uint64 `json:"token"`
	TTL        string `json:"ttl"`
	RenewEvery string `json:"renew_every"`
	Attempt    string `json:"attempt"`
	Value      string `json:"value"`
}

// Encode returns the record of the named election as JSON, without its
// Version.
func Encode(name string, r Record) []byte {
	b, err := json.Marshal(encoded{Schema, name, r.Holder, r.Token, r.TTL.String(), r.RenewEvery.String(), r.Attempt.String(), r.Value})
	if err != nil {
		panic(err) // strings and integers always marshal
	}
	return b
}

// Decode returns the record of the named election from what Encode wrote,
// without a Version. Anything else is ErrForeignRecord: other fields, missing
// or repeated ones, nested ones, a later schema, values out of bounds.
func Decode(name string, b []byte) (Record, error) {
	if len(b) > maxEncoded {
		return Record{}, Foreign("it has %d bytes", len(b))
	}
	fields, err := flatFields(b)
	if err != nil {
		return Record{}, Foreign("%v", err)
	}
	if schema := fields["schema"]; schema != strconv.Itoa(Schema) {
		return Record{}, Foreign("its schema is %.20q and this version of the library knows %d", schema, Schema)
	}
	if len(fields) != len(known) {
		return Record{}, Foreign("it has %d fields, not %d", len(fields), len(known))
	}
	for key := range known { // or an unknown field would stand in for one, and an empty holder means vacant
		if _, ok := fields[key]; !ok {
			return Record{}, Foreign("it has no field %q", key)
		}
	}
	if fields["election"] != name {
		return Record{}, Foreign("it belongs to election %.140q", fields["election"])
	}
	r := Record{Holder: fields["holder"], Value: fields["value"]}
	if r.Token, err = strconv.ParseUint(fields["token"], 10, 64); err != nil {
		return Record{}, Foreign("its token is unreadable")
	}
	if r.TTL, err = time.ParseDuration(fields["ttl"]); err != nil {
		return Record{}, Foreign("its TTL is unreadable")
	}
	if r.RenewEvery, err = time.ParseDuration(fields["renew_every"]); err != nil {
		return Record{}, Foreign("its renewal interval is unreadable")
	}
	if r.Attempt, err = ParseAttempt(fields["attempt"]); err != nil {
		return Record{}, Foreign("its attempt is unreadable")
	}
	return r, r.Validate()
}

// known names the fields of schema 1 and which of them are JSON numbers.
var known = map[string]bool{"schema": true, "token": true,
	"election": false, "holder": false, "ttl": false, "renew_every": false, "attempt": false, "value": false}

// flatFields reads one JSON object of strings and numbers. The decoder is
// driven token by token because Unmarshal takes the last of repeated keys and
// folds their case, and because nesting must cost no memory.
func flatFields(b []byte) (map[string]string, error) {
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("it is not a JSON object")
	}
	fields := make(map[string]string, len(known))
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil, fmt.Errorf("it is not JSON")
		}
		if _, repeated := fields[key]; repeated {
			return nil, fmt.Errorf("it has the field %.20q twice", key)
		}
		// A later schema may have fields that this version does not know;
		// let the caller say that it is the schema.
		if t, err = d.Token(); err != nil {
			return nil, fmt.Errorf("it is not JSON")
		}
		number, isKnown := known[key]
		switch v := t.(type) {
		case string:
			fields[key] = v
			ok = !number
		case json.Number:
			fields[key] = v.String()
			ok = number
		default:
			return nil, fmt.Errorf("its field %.20q is neither text nor a number", key)
		}
		if isKnown && !ok {
			return nil, fmt.Errorf("its field %.20q is of the wrong kind", key)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("it is not JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows it")
	}
	return fields, nil
}

// String returns the attempt as one word, nonce and sequence number.
func (a Attempt) String() string {
	return a.Nonce + "." + strconv.FormatUint(a.Sequence, 10)
}

// ParseAttempt reads what String wrote.
func ParseAttempt(s string) (Attempt, error) {
	nonce, sequence, _ := strings.Cut(s, ".")
	n, err := strconv.ParseUint(sequence, 10, 64)
	if err != nil || nonce == "" {
		return Attempt{}, fmt.Errorf("attempt %.80q is not of the form nonce.sequence", s)
	}
	return Attempt{nonce, n}, nil
}
