package file

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/elector-go/elector/backends"
)

var _ backends.Inspector = (*Backend)(nil)

// leastFree is room for some thousand records.
const leastFree = 16 << 20

// Inspect implements [backends.Inspector]. It looks at the file system: whether it outlives
// the machine's uptime, and at the room that is left.
func (b *Backend) Inspect(ctx context.Context, _ time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(context.Context) (i backends.Inspection, err error) {
		var s unix.Statfs_t
		if err := unix.Statfs(b.dir, &s); err != nil {
			return i, err
		}
		system := backends.Finding{What: "file system", Seen: "on a disk"}
		switch s.Type {
		case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
			system.Seen = "in memory"
			system.Fix = "name a directory on a disk: these records, and the fencing tokens in them, end with the machine's uptime"
		case unix.OVERLAYFS_SUPER_MAGIC:
			system.Seen = "of a container"
			system.Fix = "mount a volume: these records, and the fencing tokens in them, end with the container, and other containers do not see them"
		}
		free := s.Bavail * uint64(s.Bsize)
		room := backends.Finding{What: "room", Seen: fmt.Sprintf("%d MB and %d files are left", free>>20, s.Ffree)}
		if free < leastFree || s.Files > 0 && s.Ffree < 100 {
			room.Fix = "make room: each renewal writes a file before it replaces the old one, and fails on a full disk"
		}
		return backends.Inspection{Findings: []backends.Finding{system, room}}, nil
	})
}
