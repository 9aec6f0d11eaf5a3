package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// A config is what matters of the configuration of a stream.
type config struct {
	Name         string   `json:"name"`
	Description  string   `json:"description,omitempty"`
	Subjects     []string `json:"subjects"`
	Retention    string   `json:"retention"`
	Storage      string   `json:"storage"`
	Discard      string   `json:"discard"`
	Replicas     int      `json:"num_replicas"`
	MaxPerKey    int64    `json:"max_msgs_per_subject"`
	MaxMessages  int64    `json:"max_msgs"`
	MaxBytes     int64    `json:"max_bytes"`
	MaxSize      int64    `json:"max_msg_size"`
	MaxAge       int64    `json:"max_age"`
	MaxConsumers int64    `json:"max_consumers"`
	AllowRollup  bool     `json:"allow_rollup_hdrs"`
	DenyDelete   bool     `json:"deny_delete"`
	AllowDirect  bool     `json:"allow_direct"`

	Sealed    bool              `json:"sealed,omitempty"`
	NoAck     bool              `json:"no_ack,omitempty"`
	Counter   bool              `json:"allow_msg_counter,omitempty"`
	Persist   string            `json:"persist_mode,omitempty"`
	Mirror    any               `json:"mirror,omitempty"`
	Sources   []any             `json:"sources,omitempty"`
	Transform any               `json:"subject_transform,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// An information is what a stream's leader shows of it.
type information struct {
	Error   *apiError
	Config  config
	Created time.Time
	Time    time.Time `json:"ts"`
	Total   int
	State   struct {
		Bytes    int64
		Messages int64
		Subjects map[string]int
	}
	Cluster *struct {
		Name     string
		Leader   string
		Replicas []struct {
			Name    string
			Current bool
			Offline bool
		}
	}
}

// info asks the stream's leader about it.
func (b *Backend) info(ctx context.Context, body any) (information, error) {
	var i information
	err := b.ask(ctx, "STREAM.INFO."+b.stream(), body, &i)
	switch {
	case err != nil:
		return i, err
	case i.Error != nil:
		return i, i.Error
	case i.Config.Name != b.stream():
		return i, errNotJetStream
	}
	b.replicated.Store(i.Config.Replicas > 1)
	return i, nil
}

// least is the first version whose servers check a condition against the writes in flight
// of other conditions too. Version 2.11 checks it against those of the same condition
// alone, so a guarded write could pass an acquisition; older ones ignore the condition.
var least = [2]int{2, 12}

// tooOld returns an error for a server that this package cannot use.
func tooOld(version string) error {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) == 3 {
		major, err := strconv.Atoi(parts[0])
		minor, e := strconv.Atoi(parts[1])
		if err == nil && e == nil && slices.Compare([]int{major, minor}, least[:]) >= 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: nats-server %.20q is older than %d.%d; upgrade all servers", backends.ErrMisconfigured, version, least[0], least[1])
}

// prepare finds the bucket, or makes it if it may, and looks at whether it can keep records.
func (b *Backend) prepare(ctx context.Context, o Options) error {
	version, err := backends.WithContext(ctx, b.base, func() (string, error) { return b.nc.ConnectedServerVersion(), nil })
	switch {
	case err != nil:
		return err
	case version == "":
		return errDisconnected
	case tooOld(version) != nil:
		return tooOld(version)
	}
	i, err := b.info(ctx, struct{}{})
	if e, ok := as[*apiError](err); ok && e.ErrCode == codeNoStream && !b.base.ReadOnly() {
		if !o.Create {
			return fmt.Errorf("%w: these servers have no bucket %s for this account; if they are the right ones, create=true in the URL, or Create in the options of New, creates it, or an administrator can run: %s: %w", backends.ErrMisconfigured, b.bucket, b.createCommand(), e)
		}
		i, err = b.create(ctx, o.Replicas)
	}
	if err != nil || b.base.ReadOnly() {
		return err
	}
	return b.suitable(i.Config)
}

// createCommand makes the bucket.
func (b *Backend) createCommand() string {
	return "nats kv add " + b.bucket + " --history=1 --storage=file --replicas=3 (1 where there is one server)"
}

// create makes the bucket as nats.go's CreateKeyValue does, but without direct reads.
func (b *Backend) create(ctx context.Context, replicas int) (information, error) {
	if replicas == 0 {
		cluster, err := backends.WithContext(ctx, b.base, func() (string, error) { return b.nc.ConnectedClusterName(), nil })
		if err != nil {
			return information{}, err
		}
		if replicas = 1; cluster != "" {
			replicas = 3
		}
	}
	var i information
	err := b.ask(ctx, "STREAM.CREATE."+b.stream(), config{
		Name: b.stream(), Description: "records of elections", Subjects: []string{b.keys() + ">"},
		Retention: "limits", Storage: "file", Discard: "new", Replicas: replicas,
		MaxPerKey: 1, MaxMessages: -1, MaxBytes: -1, MaxSize: -1, MaxConsumers: -1,
		AllowRollup: true, DenyDelete: true,
	}, &i)
	if err == nil && i.Error != nil {
		err = i.Error
	}
	if e, ok := as[*apiError](err); ok && e.ErrCode == codeNameInUse { // another process has made it
		return b.info(ctx, struct{}{})
	}
	b.replicated.Store(replicas > 1)
	return i, err
}

// suitable returns why the stream must be set differently, all of it.
func (b *Backend) suitable(c config) error {
	var wrong []string
	no := func(is bool, what, fix string) {
		if is {
			wrong = append(wrong, what+": "+fix)
		}
	}
	another := "make another bucket"
	no(c.Storage != "file", "its storage is "+c.Storage+", which a restart empties", another+" with --storage=file")
	no(c.Retention != "" && c.Retention != "limits", "its retention is "+c.Retention, another)
	no(c.Mirror != nil || len(c.Sources) > 0, "it copies another stream", "use that one's bucket")
	no(c.Transform != nil, "it changes subjects", another)
	no(c.Sealed, "it is sealed", another)
	no(c.Counter, "it keeps counters", another)
	no(c.Persist == "async", "it acknowledges writes before they are written (persist_mode async)", another)
	no(c.NoAck, "it acknowledges nothing", "nats stream edit "+b.stream()+" --ack")
	no(c.MaxAge > 0, fmt.Sprintf("it deletes records after %v", time.Duration(c.MaxAge)), "nats stream edit "+b.stream()+" --max-age=0")
	no(c.MaxPerKey < 1 || c.MaxPerKey > 64, "it does not bound the history of a key", "nats stream edit "+b.stream()+" --max-msgs-per-subject=1")
	no(c.Discard != "new" && (c.MaxBytes > 0 || c.MaxMessages > 0), "it deletes records when it is full", "nats stream edit "+b.stream()+" --discard=new")
	no(c.MaxSize > 0 && c.MaxSize < largest, fmt.Sprintf("it takes messages of at most %d bytes", c.MaxSize), "nats stream edit "+b.stream()+" --max-msg-size=-1")
	no(!slices.Contains(c.Subjects, b.keys()+">"), "its subjects are not those of a bucket", another)
	no(tooOld(c.Metadata["_nats.ver"]) != nil, fmt.Sprintf("its leader is a nats-server older than %d.%d", least[0], least[1]), "upgrade all servers")
	if wrong != nil {
		return fmt.Errorf("%w: bucket %s cannot keep elections: %s", backends.ErrMisconfigured, b.bucket, strings.Join(wrong, "; "))
	}
	return nil
}

// largest is more than any record takes, with its headers.
const largest = 64 << 10

// List implements [backends.Lister]. It asks for the keys under the prefix, and then for
// the latest message of each election, because a key that was deleted stays listed.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(ctx context.Context) ([]string, error) {
		there := map[string]bool{}
		if b.replicated.Load() && !b.base.ReadOnly() {
			// With a majority behind it, the leader knows every write before this one.
			if _, err := b.latest(ctx, listing, b.subject(listing)+".*.*"); err != nil {
				return nil, err
			}
		}
		for listed := 0; ; {
			i, err := b.info(ctx, map[string]any{"subjects_filter": b.keys() + b.prefix + ".*.*.*", "offset": listed})
			if err != nil {
				return nil, err
			}
			for subject := range i.State.Subjects {
				if name, _, _, ok := b.name(subject); ok {
					there[name] = true
				}
			}
			if listed += len(i.State.Subjects); len(i.State.Subjects) == 0 || listed >= i.Total {
				return b.present(ctx, there)
			}
		}
	})
}

// listing stands for the name of an election that none has, because it is too long.
var listing = strings.Repeat("-", backends.MaxName+1)

// together is how many reads are under way at once.
const together = 64

// present returns the names that have a record, or what is not one.
func (b *Backend) present(ctx context.Context, names map[string]bool) (present []string, err error) {
	var all sync.WaitGroup
	var mutex sync.Mutex
	room := make(chan struct{}, together)
	for name := range names {
		if backends.CheckName(name) != nil {
			continue
		}
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			m, failed := b.last(ctx, name)
			mutex.Lock()
			defer mutex.Unlock()
			if failed != nil {
				err = errors.Join(err, failed)
			} else if r, foreign := b.record(name, m); foreign != nil || r.Exists() {
				present = append(present, name)
			}
		})
	}
	all.Wait()
	return present, err
}
