package zkconn

import (
	"encoding/binary"
	"testing"
	"time"
)

// FuzzAnswers: however an answer is cut up on its way, a wire counts the same
// answers and events. Each byte of what is sent is the length of a message
// beyond the eight bytes that each has; odd ones are events.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{0, 1, 8, 9, 255}, []byte{1, 2, 3})
	f.Add([]byte{2, 2, 2}, []byte{4})
	f.Add([]byte{2, 4, 3}, []byte{})
	f.Fuzz(func(t *testing.T, messages, cuts []byte) {
		w := &wire{servers: &servers{patience: time.Hour}, waiting: len(messages)}
		answers := 0
		for i, n := range messages {
			id := int32(-1)
			if n%2 == 0 {
				id, answers = int32(n), answers+1
			}
			m := binary.BigEndian.AppendUint32(nil, 4+uint32(n))
			m = binary.BigEndian.AppendUint32(m, uint32(id))
			m = append(m, make([]byte, n)...)
			for j := i; len(m) > 0; j++ {
				cut := len(m)
				if len(cuts) > 0 {
					cut = min(cut, max(1, int(cuts[j%len(cuts)])))
				}
				w.scan(m[:cut])
				m = m[cut:]
			}
			if w.waiting != len(messages)-answers || len(w.head) != 0 || w.seen != 0 {
				t.Fatalf("after %d messages with %d answers, %d of %d are waited for, and %d bytes were kept", i+1, answers, w.waiting, len(messages), w.seen)
			}
		}
		if w.waiting == 0 && !w.due.IsZero() || w.waiting > 0 && answers > 0 && w.due.IsZero() {
			t.Fatalf("%d answers are missing, and the next is due: %v", w.waiting, w.due)
		}
	})
}
