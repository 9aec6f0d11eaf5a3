package dynamodb

import (
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]address{
		"dynamodb://My_table.1-a":                            {Options: Options{Table: "My_table.1-a"}},
		"dynamodb://tab/?region=r":                           {region: "r", Options: Options{Table: "tab"}},
		"dynamodb://tab?endpoint=http://h:1&create=true":     {endpoint: "http://h:1", Options: Options{Table: "tab", Create: true}},
		"dynamodb://tab?readonly=true&create=true":           {Options: Options{Table: "tab", Create: true, ReadOnly: true}},
		"dynamodb://tab?endpoint=https://h&create=false":     {endpoint: "https://h", Options: Options{Table: "tab"}},
		"dynamodb://tab?single_region=true&region=eu-west-1": {region: "eu-west-1", Options: Options{Table: "tab", SingleRegion: true}},
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parse(u); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", s, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for s, want := range map[string]string{
		"dynamodb:tab":                                 "of the form",
		"dynamodb://":                                  "of the form",
		"dynamodb:///tab":                              "of the form",
		"dynamodb://ab":                                "of the form",
		"dynamodb://t%C3%A4ble":                        "of the form",
		"dynamodb://host:8000/tab":                     "endpoint=",
		"dynamodb://host:8000":                         "endpoint=",
		"dynamodb://tab/other":                         "of the form",
		"dynamodb://tab#hunter2":                       "of the form",
		"dynamodb://id:hunter2@tab":                    "AWS_PROFILE",
		"dynamodb://id@tab":                            "AWS_PROFILE",
		"dynamodb://id:1/hunter2@tab":                  "AWS_PROFILE",
		"dynamodb://id:1?hunter2@tab":                  "AWS_PROFILE",
		"dynamodb://id:1#hunter2@tab":                  "AWS_PROFILE",
		"dynamodb://tab?endpoint=http://i:hunter2@h":   "AWS_PROFILE",
		"dynamodb://tab?endpoint=http://i:hunter2%40h": "endpoint is not",
		"dynamodb://tab?endpoint=h:8000":               "endpoint is not",
		"dynamodb://tab?endpoint=ftp://h":              "endpoint is not",
		"dynamodb://tab?endpoint=http://":              "endpoint is not",
		"dynamodb://tab?endpoint=http://h%3Fa":         "endpoint is not",
		"dynamodb://tab?create=perhaps":                "neither true nor false",
		"dynamodb://tab?readonly=perhaps":              "neither true nor false",
		"dynamodb://tab?region=a&region=b":             "2 times",
		"dynamodb://tab?consistency=eventual":          "unknown parameter",
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parse(u)
		if !errors.Is(err, backends.ErrURL) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ErrURL with %q", s, err, want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", s, err)
		}
	}
}

func TestSettings(t *testing.T) {
	f := newFake(t)
	u := f.address("")
	u.RawQuery = "endpoint=" + f.URL
	if _, err := open(t.Context(), u); !errors.Is(err, backends.ErrURL) || !strings.Contains(err.Error(), "region=") {
		t.Errorf("no region: got %v", err)
	}
	t.Setenv("AWS_REGION", "eu-west-1")
	b, err := open(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if got, want := b.Describe().Store, "dynamodb://elector?region=eu-west-1&endpoint="+f.URL; got != want {
		t.Errorf("the store is %q, want %q", got, want)
	}

	t.Setenv("AWS_PROFILE", "none")
	if err := f.refused(t, ""); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "~/.aws") {
		t.Errorf("no such profile: got %v", err)
	}
	t.Setenv("AWS_PROFILE", "")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if err := f.refused(t, ""); !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), "AWS_PROFILE") {
		t.Errorf("no credentials: got %v", err)
	}
}

// No caller can close connections that fetch credentials, so none may stay.
func TestFetchedCredentials(t *testing.T) {
	f := newFake(t)
	closed := make(chan struct{}, 1)
	giver := httptest.NewUnstartedServer(says(`{"AccessKeyId":"id","SecretAccessKey":"hunter2","Token":"t","Expiration":"2100-01-01T00:00:00Z"}`))
	giver.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	giver.Start()
	defer giver.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", giver.URL)
	f.open(t)
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("the connection to where credentials come from is still open")
	}
}

// table changes the description of the table that fits.
func table(old, new string) string {
	changed := strings.Replace(description, old, new, 1)
	if changed == description {
		panic("nothing to replace: " + old)
	}
	return changed
}

const stream = `,"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}`

func TestTables(t *testing.T) {
	ttl := func(status string) http.HandlerFunc {
		return says(`{"TimeToLiveDescription":{"TimeToLiveStatus":"` + status + `","AttributeName":"expires"}}`)
	}
	for what, test := range map[string]struct {
		table      string
		operation  string // and its answer
		answer     http.HandlerFunc
		parameters string
		kind       error
		says       string
	}{
		"it fits":             {table: description},
		"it is being changed": {table: table("ACTIVE", "UPDATING")},
		"being made":          {table: table("ACTIVE", "CREATING"), kind: backends.ErrUnavailable, says: "CREATING"},
		"being deleted":       {table: table("ACTIVE", "DELETING"), kind: backends.ErrUnavailable, says: "DELETING"},
		"archived":            {table: table("ACTIVE", "ARCHIVED"), kind: backends.ErrMisconfigured, says: "ARCHIVED"},
		"key's name":          {table: strings.ReplaceAll(description, `"election"`, `"id"`), kind: backends.ErrMisconfigured, says: "id (HASH, S)"},
		"key's type":          {table: table(`"AttributeType":"S"`, `"AttributeType":"N"`), kind: backends.ErrMisconfigured, says: "election (HASH, N)"},
		"sort key": {table: table(`"KeyType":"HASH"}`, `"KeyType":"HASH"},{"AttributeName":"at","KeyType":"RANGE"}`),
			kind: backends.ErrMisconfigured, says: "create-table --region eu-central-1 --table-name elector --billing-mode"},
		"an index is nobody's business": {table: table(`"AttributeType":"S"}`, `"AttributeType":"S"},{"AttributeName":"x","AttributeType":"N"}`)},

		"global":           {table: description + `,"Replicas":[{"RegionName":"eu-west-1"}]`, kind: backends.ErrMisconfigured, says: "single_region=true"},
		"global, eventual": {table: description + `,"Replicas":[{"RegionName":"eu-west-1"}],"MultiRegionConsistency":"EVENTUAL"`, kind: backends.ErrMisconfigured, says: "global"},
		"global, unshown":  {table: description + `,"GlobalTableVersion":"2019.11.21"`, kind: backends.ErrMisconfigured, says: "global"},
		"global, strong":   {table: description + `,"GlobalTableVersion":"2019.11.21","Replicas":[{"RegionName":"eu-west-1"}],"MultiRegionConsistency":"STRONG"`},
		"global, promised": {table: description + `,"Replicas":[{"RegionName":"eu-west-1"}]`, parameters: "&single_region=true"},
		"global of 2017": {table: description + stream, operation: "DescribeGlobalTable", answer: says(`{"GlobalTableDescription":{}}`),
			kind: backends.ErrMisconfigured, says: "global"},
		"global of 2017, promised": {table: description + stream, operation: "DescribeGlobalTable", answer: says(`{}`), parameters: "&single_region=true"},
		"a stream":                 {table: description + stream, operation: "DescribeGlobalTable", answer: fails(400, "GlobalTableNotFoundException", "")},
		"a stream, emulated":       {table: description + stream},
		"a stream, denied":         {table: description + stream, operation: "DescribeGlobalTable", answer: denied, kind: backends.ErrDenied, says: "stream"},

		"time to live":                {table: description, operation: "DescribeTimeToLive", answer: ttl("ENABLED"), kind: backends.ErrMisconfigured, says: "AttributeName=expires"},
		"time to live soon":           {table: description, operation: "DescribeTimeToLive", answer: ttl("ENABLING"), kind: backends.ErrMisconfigured, says: "expires"},
		"time to live no more":        {table: description, operation: "DescribeTimeToLive", answer: ttl("DISABLED")},
		"time to live unknown":        {table: description, operation: "DescribeTimeToLive", answer: fails(400, unknownOperation, "")},
		"time to live, denied":        {table: description, operation: "DescribeTimeToLive", answer: denied, kind: backends.ErrDenied, says: "DescribeTimeToLive"},
		"time to live, no answer":     {table: description, operation: "DescribeTimeToLive", answer: reset, kind: backends.ErrUnavailable, says: "time to live"},
		"no such table":               {operation: "DescribeTable", answer: fails(400, "ResourceNotFoundException", "not found"), kind: backends.ErrMisconfigured, says: "create=true"},
		"denied":                      {operation: "DescribeTable", answer: denied, kind: backends.ErrDenied, says: "DescribeTable"},
		"something else":              {operation: "DescribeTable", answer: says(`{}`), kind: backends.ErrMisconfigured, says: "endpoint"},
		"something else, by its name": {operation: "DescribeTable", answer: fails(400, unknownOperation, ""), kind: backends.ErrMisconfigured, says: "endpoint"},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFake(t)
			if test.table != "" {
				f.on("DescribeTable", says(`{"Table":{`+test.table+`}}`))
			}
			if test.operation != "" {
				f.on(test.operation, test.answer)
			}
			err := f.refused(t, test.parameters)
			if test.kind == nil && err != nil || !errors.Is(err, test.kind) {
				t.Fatalf("got %v, want %v", err, test.kind)
			}
			if err != nil && (!strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "opening dynamodb://elector?region=eu-central-1")) {
				t.Errorf("%v does not say %q, or which table it is about", err, test.says)
			}
			if n := len(f.bodies("CreateTable")) + len(f.bodies("PutItem")); n != 0 {
				t.Errorf("%d writes were made while opening", n)
			}
		})
	}
}

func TestCreate(t *testing.T) {
	missing := fails(400, "ResourceNotFoundException", "not found")
	for what, test := range map[string]struct {
		first, create, last http.HandlerFunc
		kind                error
		says                string
	}{
		"made":            {missing, says(`{}`), says(`{"Table":{` + description + `}}`), nil, ""},
		"made by another": {missing, fails(400, "ResourceInUseException", ""), says(`{"Table":{` + description + `}}`), nil, ""},
		"made by another, wrongly": {missing, fails(400, "ResourceInUseException", ""), says(`{"Table":{` + table(`"AttributeType":"S"`, `"AttributeType":"N"`) + `}}`),
			backends.ErrMisconfigured, "election (HASH, N)"},
		"no right to":   {missing, fails(400, "AccessDeniedException", "not authorized to perform: dynamodb:CreateTable"), missing, backends.ErrMisconfigured, "aws dynamodb create-table"},
		"under way":     {says(`{"Table":{` + table("ACTIVE", "CREATING") + `}}`), nil, says(`{"Table":{` + description + `}}`), nil, ""},
		"there already": {says(`{"Table":{` + description + `}}`), nil, nil, nil, ""},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFake(t)
			asked := 0
			f.on("DescribeTable", func(w http.ResponseWriter, r *http.Request) {
				switch asked++; asked {
				case 1:
					test.first(w, r)
				case 2: // what the service shows may lag behind
					missing(w, r)
				case 3:
					says(`{"Table":{`+table("ACTIVE", "CREATING")+`}}`)(w, r)
				default:
					test.last(w, r)
				}
			})
			if test.create != nil {
				f.on("CreateTable", test.create)
			}
			err := f.refused(t, "&create=true")
			if test.kind == nil && err != nil || !errors.Is(err, test.kind) {
				t.Fatalf("got %v, want %v", err, test.kind)
			}
			if err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v does not say %q", err, test.says)
			}
			bodies := f.bodies("CreateTable")
			if (test.create != nil) != (len(bodies) == 1) {
				t.Errorf("the table was made %d times", len(bodies))
			}
			for _, body := range bodies {
				for _, want := range []string{`"BillingMode":"PAY_PER_REQUEST"`, `"AttributeName":"election"`, `"KeyType":"HASH"`, `"AttributeType":"S"`} {
					if !strings.Contains(body, want) {
						t.Errorf("%s is made without %s", body, want)
					}
				}
			}
		})
	}
}

func TestTransport(t *testing.T) {
	f := unstarted(t)
	f.EnableHTTP2 = true
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.on("GetItem", func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("the request came by %s, in which one dark connection holds up all", r.Proto)
		}
		says(`{}`)(w, r)
	})
	f.StartTLS()
	if err := f.refused(t, ""); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "AWS_CA_BUNDLE") {
		t.Errorf("an unknown authority: got %v", err)
	}
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CA_BUNDLE", bundle)
	if _, err := f.open(t).Load(t.Context(), "a"); err != nil {
		t.Error(err)
	}

	plain := newFake(t)
	plain.URL = strings.Replace(plain.URL, "http:", "https:", 1)
	if err := plain.refused(t, ""); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "http or https") {
		t.Errorf("https to a server of http: got %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	check.NotMade[*Backend](t, "client")(New(t.Context(), nil, nil))
	check.NotMade[*Backend](t, "Table")(New(t.Context(), new(dynamodb.Client), nil))
	check.NotMade[*Backend](t, "Table")(New(t.Context(), new(dynamodb.Client), &Options{Create: true}))
	check.NotMade[*Backend](t, "Table")(New(t.Context(), new(dynamodb.Client), &Options{Table: "a/b"}))
}
