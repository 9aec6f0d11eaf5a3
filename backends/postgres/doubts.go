package postgres

import (
	"sync"

	"github.com/elector-go/elector/backends"
)

// doubts are the writes whose outcome is unknown. Their commits may be visible
// although no standby has them, and they may yet be applied for as long as the
// version that they were to replace is there. The zero value has none.
type doubts struct {
	mutex sync.Mutex
	of    map[string]doubt // by the election's name
}

// A doubt is the version that writes were to replace, and how many there are.
type doubt struct {
	version backends.Version
	writes  int
}

// about returns the version that a doubtful write was to replace.
func (d *doubts) about(name string) (backends.Version, bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	doubt, ok := d.of[name]
	return doubt.version, ok
}

// add begins a doubt. Writes of another version, which has been replaced since,
// cannot be applied any more.
func (d *doubts) add(name string, version backends.Version) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.of == nil {
		d.of = map[string]doubt{}
	}
	now := d.of[name]
	if now.version != version {
		now = doubt{version: version}
	}
	now.writes++
	d.of[name] = now
}

// drop ends the doubt about one write, which was certainly not applied.
func (d *doubts) drop(name string, version backends.Version) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	now, ok := d.of[name]
	if !ok || now.version != version {
		return
	}
	if now.writes--; now.writes == 0 {
		delete(d.of, name)
		return
	}
	d.of[name] = now
}

// end ends the doubt about all writes that were to replace the version, which
// has been replaced.
func (d *doubts) end(name string, version backends.Version) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if now, ok := d.of[name]; ok && now.version == version {
		delete(d.of, name)
	}
}
