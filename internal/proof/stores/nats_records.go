package stores

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// NATSRecords are the records in a bucket, reached without the adapter.
type NATSRecords struct {
	nc     *nats.Conn
	bucket string
	prefix string
}

// NewNATSRecords returns the records under a prefix of a bucket.
func NewNATSRecords(nc *nats.Conn, bucket, prefix string) NATSRecords {
	return NATSRecords{nc, bucket, prefix}
}

// A NATSMessage is one that a stream keeps.
type NATSMessage struct {
	Subject    string
	Seq        uint64
	Hdrs, Data []byte
}

type natsAnswer struct {
	Error *struct {
		ErrCode     int `json:"err_code"`
		Description string
	}
	Message *NATSMessage
	Seq     uint64
}

// natsRequest returns an answer of JetStream, whose error is one too unless it is allowed.
func natsRequest(ctx context.Context, nc *nats.Conn, m *nats.Msg, allowed ...int) (a natsAnswer, err error) {
	answer, err := nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(answer.Data, &a); err != nil {
		return a, fmt.Errorf("%s: it answers %.200q", m.Subject, answer.Data)
	}
	if a.Error != nil {
		for _, code := range allowed {
			if a.Error.ErrCode == code {
				return a, nil
			}
		}
		return a, fmt.Errorf("%s: %s (%d)", m.Subject, a.Error.Description, a.Error.ErrCode)
	}
	return a, nil
}

// NATSLast returns the latest message on the subjects, from the stream's leader. The zero
// message means that there is none.
func NATSLast(ctx context.Context, nc *nats.Conn, stream, subjects string) (NATSMessage, error) {
	return natsGet(ctx, nc, stream, map[string]any{"last_by_subj": subjects})
}

// NATSNext returns the first message on the subjects from the sequence on.
func NATSNext(ctx context.Context, nc *nats.Conn, stream, subjects string, from uint64) (NATSMessage, error) {
	return natsGet(ctx, nc, stream, map[string]any{"next_by_subj": subjects, "seq": from})
}

func natsGet(ctx context.Context, nc *nats.Conn, stream string, which map[string]any) (NATSMessage, error) {
	body, err := json.Marshal(which)
	if err != nil {
		return NATSMessage{}, err
	}
	const none = 10037
	a, err := natsRequest(ctx, nc, &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET." + stream, Data: body}, none)
	if err != nil || a.Message == nil {
		return NATSMessage{}, err
	}
	return *a.Message, nil
}

func (r NATSRecords) subject(election string) string {
	return "$KV." + r.bucket + "." + r.prefix + "." + strings.ReplaceAll(election, ".", "=")
}

func (r NATSRecords) last(ctx context.Context, election string) (NATSMessage, error) {
	return NATSLast(ctx, r.nc, "KV_"+r.bucket, r.subject(election)+".*.*")
}

// Get returns what the bucket keeps for an election, nil if there is nothing.
func (r NATSRecords) Get(ctx context.Context, election string) ([]byte, error) {
	m, err := r.last(ctx, election)
	if err != nil || m.Seq == 0 || bytes.Contains(m.Hdrs, []byte("KV-Operation: DEL")) {
		return nil, err
	}
	return append([]byte{}, m.Data...), nil
}

// Put writes to the key that has the record, or to a new one.
func (r NATSRecords) Put(ctx context.Context, election string, content []byte) error {
	_, err := r.write(ctx, election, &nats.Msg{Data: content})
	return err
}

// Replace makes content the record if that is old, and reports whether it was.
func (r NATSRecords) Replace(ctx context.Context, election string, old, content []byte) (bool, error) {
	const stale, underWay = 10071, 10164
	m, err := r.last(ctx, election)
	if err != nil || m.Seq == 0 || !bytes.Equal(m.Data, old) {
		return false, err
	}
	a, err := natsRequest(ctx, r.nc, &nats.Msg{Subject: m.Subject, Data: content, Header: nats.Header{
		"Nats-Expected-Last-Subject-Sequence":         {strconv.FormatUint(m.Seq, 10)},
		"Nats-Expected-Last-Subject-Sequence-Subject": {r.subject(election) + ".*.*"},
	}}, stale, underWay)
	return err == nil && a.Error == nil, err
}

// Delete deletes the key as nats kv del does.
func (r NATSRecords) Delete(ctx context.Context, election string) error {
	_, err := r.write(ctx, election, &nats.Msg{Header: nats.Header{"KV-Operation": {"DEL"}}})
	return err
}

func (r NATSRecords) write(ctx context.Context, election string, m *nats.Msg) (NATSMessage, error) {
	last, err := r.last(ctx, election)
	if err != nil {
		return last, err
	}
	if m.Subject = last.Subject; m.Subject == "" {
		m.Subject = r.subject(election) + ".raw.term"
	}
	_, err = natsRequest(ctx, r.nc, m)
	return last, err
}
