// Package transactor adds transactions to dynalite, which has none.
package transactor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// A Transactor is an HTTP server before dynalite that adds TransactWriteItems.
// Dynalite evaluates all conditions. As Amazon documents it, a transaction is
// refused if it meets a write of one of its items, and a write if it meets a
// transaction. Whether two condition checks of one item conflict is not documented;
// here they do. Reads wait. It knows tables with the key "election" only, and no
// ClientRequestToken.
type Transactor struct {
	server    *httptest.Server
	url       string
	transport *http.Transport
	forward   *httputil.ReverseProxy

	mutex sync.Mutex
	items map[string]*sync.RWMutex // a transaction locks its items
}

// Start starts a Transactor before the dynalite at an address, host:port.
func Start(address string) *Transactor {
	to := &url.URL{Scheme: "http", Host: address}
	x := &Transactor{url: to.String(), transport: &http.Transport{}, forward: httputil.NewSingleHostReverseProxy(to), items: map[string]*sync.RWMutex{}}
	x.forward.Transport = x.transport
	x.server = httptest.NewServer(http.HandlerFunc(x.serve))
	return x
}

// Address is host:port, on 127.0.0.1.
func (x *Transactor) Address() string { return x.server.Listener.Addr().String() }

// Stop ends the server.
func (x *Transactor) Stop() {
	x.server.Close()
	x.transport.CloseIdleConnections()
}

type object = map[string]any

func (x *Transactor) serve(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	request := object{}
	if err == nil {
		err = json.Unmarshal(content, &request)
	}
	if err != nil {
		fail(w, object{"__type": "SerializationException", "message": err.Error()})
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(content))
	switch _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation {
	case "TransactWriteItems":
		x.transact(w, r, request)
	case "PutItem", "UpdateItem", "DeleteItem":
		if lock := x.item(request); lock.TryRLock() {
			defer lock.RUnlock()
			x.forward.ServeHTTP(w, r)
		} else {
			fail(w, object{"__type": "TransactionConflictException", "message": "Transaction is ongoing for the item"})
		}
	case "GetItem":
		lock := x.item(request)
		lock.RLock()
		defer lock.RUnlock()
		x.forward.ServeHTTP(w, r)
	default:
		x.forward.ServeHTTP(w, r)
	}
}

func (x *Transactor) transact(w http.ResponseWriter, r *http.Request, request object) {
	type step struct{ undo, with object }
	var undo []step
	var reasons []object
	failed := false
	for _, item := range request["TransactItems"].([]any) {
		for operation, body := range item.(object) {
			body, reason := body.(object), object{"Code": "None"}
			if lock := x.item(body); !lock.TryLock() {
				reason["Code"] = "TransactionConflict"
			} else {
				defer lock.Unlock()
				at := object{"TableName": body["TableName"], "Key": keyOf(body)}
				_, old := x.call(r, "GetItem", with(at, "ConsistentRead", true))
				if operation == "ConditionCheck" {
					operation = "Update" // of nothing
				}
				if status, answer := x.call(r, operation+"Item", body); status == http.StatusOK {
					undo = append(undo, step{at, old})
				} else if strings.HasSuffix(fmt.Sprint(answer["__type"]), "ConditionalCheckFailedException") {
					reason["Code"] = "ConditionalCheckFailed"
				} else {
					reason["Code"], reason["Message"] = "ValidationError", fmt.Sprint(answer)
				}
			}
			reasons, failed = append(reasons, reason), failed || reason["Code"] != "None"
		}
	}
	if !failed {
		io.WriteString(w, "{}")
		return
	}
	for _, s := range undo {
		var status int
		var answer object
		if old := s.with["Item"]; old != nil {
			status, answer = x.call(r, "PutItem", object{"TableName": s.undo["TableName"], "Item": old})
		} else {
			status, answer = x.call(r, "DeleteItem", s.undo)
		}
		if status != http.StatusOK {
			panic(fmt.Sprintf("undoing a write: %v", answer))
		}
	}
	fail(w, object{"__type": "TransactionCanceledException", "message": "Transaction cancelled", "CancellationReasons": reasons})
}

// call makes a request to dynalite with the headers of another one.
func (x *Transactor) call(r *http.Request, operation string, body object) (int, object) {
	content, _ := json.Marshal(body)
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, x.url, bytes.NewReader(content))
	if err != nil {
		panic(err)
	}
	request.Header = r.Header.Clone()
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	answer := object{}
	response, err := x.transport.RoundTrip(request)
	if err != nil {
		return http.StatusBadGateway, object{"error": err.Error()}
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return http.StatusBadGateway, object{"error": err.Error()}
	}
	return response.StatusCode, answer
}

func (x *Transactor) item(request object) *sync.RWMutex {
	name := fmt.Sprint(request["TableName"], keyOf(request))
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.items[name] == nil {
		x.items[name] = &sync.RWMutex{}
	}
	return x.items[name]
}

func keyOf(request object) object {
	if key, ok := request["Key"].(object); ok {
		return key
	}
	item, _ := request["Item"].(object)
	return object{"election": item["election"]}
}

func with(o object, key string, value any) object {
	o = maps.Clone(o)
	o[key] = value
	return o
}

func fail(w http.ResponseWriter, answer object) {
	w.WriteHeader(http.StatusBadRequest)
	json.NewEncoder(w).Encode(answer)
}
