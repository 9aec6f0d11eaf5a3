package elector

// A purpose is what a request is for.
type purpose uint8

const (
	loading purpose = iota
	swapping
	examining // a call of Options.Healthy
	watching
	attending
)

// String returns the Op of RequestInfo.
func (p purpose) String() string {
	return [...]string{"load", "swap", "healthy", "watch", "watch-presence"}[p]
}
