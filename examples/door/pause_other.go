//go:build !unix

package door

import "fmt"

// Pause waits for a line of input.
func Pause() {
	fmt.Println("has checked its lease; waits until you press Enter")
	fmt.Scanln()
}
