package backends

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Schema is the major version of the record's layout. A record with a higher
// number is foreign: a newer version of this library wrote it in a way that this
// version cannot follow. Smaller additions are extensions.
const Schema = 1

// maxEncoded bounds what Decode reads: more than any valid record has.
const maxEncoded = 64 << 10

// encoded is the record as JSON, for stores that keep bytes. It contains the name
// of the election, so that a file system that folds case, or a copied object,
// cannot pass one election's record for another's. Everything that a renewal may
// change stands after the attempt, with extensions last.
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
	return r.Extensions.join(b)
}

// RecordPrefix returns what Encode begins with in all states of the record's acquisition,
// and in no other state: all up to the sequence number of the attempt.
func RecordPrefix(name string, r Record) string {
	r.Attempt.Sequence, r.Value, r.Extensions = 0, "", ""
	return strings.TrimSuffix(string(Encode(name, r)), `0","value":""}`)
}

// Decode returns the record of the named election from what Encode wrote,
// without a Version. It returns ErrForeignRecord for anything else: unknown,
// missing, repeated or nested fields, a higher schema, values out of bounds,
// extensions that do not stand in order after the attempt.
func Decode(name string, b []byte) (Record, error) {
	if len(b) > maxEncoded {
		return Record{}, Foreign("it has %d bytes", len(b))
	}
	fields, misplaced, err := flatFields(b)
	if err != nil {
		return Record{}, Foreign("%v", err)
	}
	if err := CheckSchema(fields["schema"]); err != nil {
		return Record{}, err
	}
	if misplaced != "" {
		return Record{}, Foreign("its field %.40q is neither one of a record nor an extension in its place", misplaced)
	}
	for key := range known { // an empty holder means vacant, a missing one is an error
		if _, ok := fields[key]; !ok {
			return Record{}, Foreign("it has no field %q", key)
		}
	}
	if fields["election"] != name {
		return Record{}, Foreign("it belongs to election %.140q", fields["election"])
	}
	r := Record{Holder: fields["holder"], Value: fields["value"]}
	extensions := maps.Clone(fields)
	maps.DeleteFunc(extensions, func(key, _ string) bool { _, ok := known[key]; return ok })
	if r.Extensions, err = extensionsOf(extensions); err != nil {
		return Record{}, err
	}
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
	return r, r.check() // extensionsOf has checked the extensions
}

// CheckSchema returns ErrForeignRecord with the reason if this version cannot read
// records of the schema.
func CheckSchema(schema string) error {
	n, err := strconv.ParseInt(schema, 10, 64)
	switch {
	case err != nil || n < 1:
		return Foreign("its schema %.20q is not a number from 1", schema)
	case n > Schema:
		return Foreign("its schema is %d and this version of the library knows %d: a newer version is in use, so upgrade this process", n, Schema)
	}
	return nil
}

// known names the fields of schema 1 and which of them are JSON numbers.
var known = map[string]bool{"schema": true, "token": true,
	"election": false, "holder": false, "ttl": false, "renew_every": false, "attempt": false, "value": false}

// flatFields reads one JSON object of strings and numbers. It reads token by token
// because Unmarshal takes the last of repeated keys and folds their case, and
// because nesting must cost no memory.
//
// misplaced is an unknown field where no extension may be: before the attempt,
// out of order, or a number. In a record of a higher schema that is allowed.
func flatFields(b []byte) (fields map[string]string, misplaced string, err error) {
	if !utf8.Valid(b) {
		return nil, "", fmt.Errorf("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, "", fmt.Errorf("it is not a JSON object")
	}
	fields = make(map[string]string, len(known))
	last := "" // extension
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil, "", fmt.Errorf("it is not JSON")
		}
		if _, repeated := fields[key]; repeated {
			return nil, "", fmt.Errorf("it has the field %.20q twice", key)
		}
		if t, err = d.Token(); err != nil {
			return nil, "", fmt.Errorf("it is not JSON")
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
			return nil, "", fmt.Errorf("its field %.20q is neither text nor a number", key)
		}
		if isKnown && !ok {
			return nil, "", fmt.Errorf("its field %.20q is of the wrong kind", key)
		}
		if !isKnown {
			_, isText := t.(string)
			if _, begun := fields["attempt"]; !begun || !isText || key < last {
				misplaced = key
			}
			last = key
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, "", fmt.Errorf("it is not JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, "", fmt.Errorf("something follows it")
	}
	return fields, misplaced, nil
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
