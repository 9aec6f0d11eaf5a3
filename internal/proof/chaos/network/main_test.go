package network

import (
	"context"
	"flag"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

// enough is much longer than anything here takes.
const enough = 45 * time.Second

func TestMain(m *testing.M) {
	for key, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		os.Setenv(key, value)
	}
	stores.AnyCredentials()
	// The cases wait most of the time, so more of them run at once than there
	// are processors.
	flag.Parse()
	if given := flag.Lookup("test.parallel"); given.Value.String() == given.DefValue {
		flag.Set("test.parallel", "20")
	}
	child.Prepare()
	ctx, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { (&history.Recorder{Tell: stalls.Tell}).WatchStalls(ctx) })
	leak.Main(m, func() { stop(); watching.Wait(); results.Save("ELECTOR_FAULT_TABLE", names()) })
}

// stalls are when this process stood still.
var stalls stallLog

type stallLog struct{ history.Log }

// since returns for how long this process stood still since a time. Upper
// bounds of how long something takes are extended by it.
func (l *stallLog) since(start time.Duration) (sum time.Duration) {
	events, _, _ := l.From(0)
	for _, e := range events {
		if e.At >= start {
			sum += e.Left
		}
	}
	return sum
}
