package nats

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
)

var (
	errNotJetStream = errors.New("the answer is not one of JetStream")
	errDisconnected = errors.New("the connection was lost")
	errSilent       = fmt.Errorf("a watch has had no message for %v", silent)
	errLost         = errors.New("a message of a watch was lost")

	// errInProcess: the stream refuses a write because another one to the same
	// subjects has not been decided. That is no conflict: the other one may have been sent
	// for the same caller, may have been answered just now, and may be lost.
	errInProcess = errors.New("another write of it is under way")
)

// A deniedError is a subject that the user may not publish to, or subscribe to.
type deniedError struct{ operation, subject string }

func (e *deniedError) Error() string {
	return fmt.Sprintf("permissions violation: %s %s", e.operation, e.subject)
}

var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]*)"`)

// denied reads an error that the server sent beside the requests.
func denied(err error) *deniedError {
	found := violation.FindStringSubmatch(err.Error())
	switch {
	case found == nil:
		return nil
	case strings.EqualFold(found[1], "publish"):
		return &deniedError{"publish", found[2]}
	}
	return &deniedError{"subscribe", found[2]}
}

// unauthorized reports whether the server has refused the credentials.
func unauthorized(err error) bool {
	return errors.Is(err, natsgo.ErrAuthorization) || errors.Is(err, natsgo.ErrAuthExpired) || errors.Is(err, natsgo.ErrAuthRevoked) || errors.Is(err, natsgo.ErrAccountAuthExpired)
}

// short bounds what others wrote.
func short(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.ToValidUTF8(line[:min(len(line), 300)], "?")
}

// as returns the first error of type E that err wraps.
func as[E error](err error) (found E, ok bool) {
	ok = errors.As(err, &found)
	return found, ok
}

// look is the advice about a store that does not answer.
const look = "see whether nats-server runs with JetStream, the stream has a leader (nats stream info) and the network leads there"

// classify is a [backends.Classify].
func (b *Backend) classify(err error) (advice string, kind error) {
	if d, ok := as[*deniedError](err); ok {
		return "an administrator can allow the user to " + b.right(d), backends.ErrDenied
	}
	if e, ok := as[*apiError](err); ok {
		return b.classifyAnswer(e)
	}
	text := err.Error()
	switch {
	case errors.Is(err, errNotJetStream):
		return "another subscriber answers on JetStream's subjects or the bucket's; see nats server report connections", backends.ErrMisconfigured
	case unauthorized(err):
		return "check user and password, or the files that creds, nkey or token_file name, and whether they have expired", backends.ErrDenied
	case errors.Is(err, natsgo.ErrNkeysNotSupported), errors.Is(err, natsgo.ErrHeadersNotSupported):
		return "the server cannot do what the URL asks for; check its version and its authorization", backends.ErrMisconfigured
	case errors.Is(err, natsgo.ErrSecureConnRequired), errors.Is(err, natsgo.ErrSecureConnWanted), handshake(err):
		return "TLS with the server failed; check ca, cert, key, server_name and tls_first, when the certificates end, and whether the server speaks TLS (natss://) or not (nats://)", backends.ErrMisconfigured
	case errors.Is(err, natsgo.ErrMaxPayload):
		return "raise max_payload of the servers to its default, 1 MB", backends.ErrMisconfigured
	case errors.Is(err, natsgo.ErrNoInfoReceived), strings.Contains(text, "nats: Unknown Protocol"), strings.Contains(text, "expected 'INFO'"):
		return "what answers does not speak NATS's protocol, or wants TLS first (natss:// and tls_first=true); check host and port", backends.ErrMisconfigured
	case errors.Is(err, io.EOF):
		return "the server has closed the connection; it may want TLS first (natss:// and tls_first=true); " + look, backends.ErrUnavailable
	case errors.Is(err, natsgo.ErrReconnectBufExceeded), errors.Is(err, natsgo.ErrDisconnected), errors.Is(err, natsgo.ErrConnectionClosed), errors.Is(err, errDisconnected):
		return "the connection is lost and is made again; " + look, backends.ErrUnavailable
	}
	return look, backends.ErrUnavailable
}

// classifyAnswer is classify for the errors of JetStream itself.
func (b *Backend) classifyAnswer(e *apiError) (advice string, kind error) {
	switch e.ErrCode {
	case codeNoStream:
		if b.base.ReadOnly() {
			return fmt.Sprintf("bucket %s does not exist, so no election has ever used it; check its name", b.bucket), backends.ErrMisconfigured
		}
		return fmt.Sprintf("bucket %s does not exist any more; stop all candidates for one TTL before you make it again: %s", b.bucket, b.createCommand()), backends.ErrMisconfigured
	case 10039, 10076: // not enabled, for the account or at all
		return "enable JetStream on the servers and for this account", backends.ErrMisconfigured
	case 10060: // the stream is not the one that the write expects
		return fmt.Sprintf("another stream than %s takes the bucket's subjects", b.stream()), backends.ErrMisconfigured
	case 10109: // sealed
		return "the stream is sealed; make another bucket", backends.ErrReadOnly
	case 10054: // larger than the stream allows
		return "raise max_msg_size of the stream, or remove it", backends.ErrMisconfigured
	case 10005, 10074: // no suitable peers, or more than one replica without a cluster
		return "too few servers can keep the bucket; write replicas=1, or start more", backends.ErrMisconfigured
	case 10027, 10028, 10047, 10023, 10077, 10026: // streams, storage and resources of the account and the servers, the stream's limits, consumers
		return "raise the limits of the account, the stream or the servers (nats account info, nats stream info)", backends.ErrUnavailable
	}
	if e.Code == 403 {
		return "an administrator can allow it to the account", backends.ErrDenied
	}
	return look, backends.ErrUnavailable
}

// right is what a user needs, after NATS has denied something.
func (b *Backend) right(d *deniedError) string {
	switch {
	case d.operation == "subscribe":
		return "subscribe to _INBOX.>, or to what the parameter inbox names"
	case strings.HasPrefix(d.subject, b.keys()):
		return fmt.Sprintf("publish to %s%s.>", b.keys(), b.prefix)
	case strings.HasPrefix(d.subject, api+"STREAM.CREATE."):
		return fmt.Sprintf("publish to %sSTREAM.CREATE.%s, or make the bucket: %s", api, b.stream(), b.createCommand())
	case strings.HasPrefix(d.subject, api+"CONSUMER.CREATE."):
		return fmt.Sprintf("publish to %sCONSUMER.CREATE.%s.*.%s%s.>", api, b.stream(), b.keys(), b.prefix)
	}
	return "publish to " + short(d.subject)
}

// handshake reports whether TLS failed for a reason that will not pass.
func handshake(err error) bool {
	_, certificate := as[*tls.CertificateVerificationError](err)
	_, alert := as[tls.AlertError](err)
	_, record := as[tls.RecordHeaderError](err)
	return certificate || record || alert || strings.Contains(err.Error(), "remote error: tls: ")
}
