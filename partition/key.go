package partition

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Of returns the partition of a key, from 0 to partitions-1: the same in every process and
// every version of this library. It is the first 8 bytes of the key's SHA-256, as a
// big-endian number, modulo partitions. It panics if partitions is below 1.
func Of(key string, partitions int) int {
	if partitions < 1 {
		panic(fmt.Sprintf("partition.Of: there are %d partitions", partitions))
	}
	sum := sha256.Sum256([]byte(key))
	return int(binary.BigEndian.Uint64(sum[:]) % uint64(partitions))
}
