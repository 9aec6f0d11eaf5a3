package elector

import "github.com/elector-go/elector/operate"

// Operator returns what a person or a tool does to this election from outside: pause it,
// resume it, request its leader to resign, read its history. It does no I/O, and the
// Operator ends with this Elector.
func (e *Elector) Operator() operate.Operator { return operator{e} }

// An operator implements operate.Operator with an Elector.
type operator struct{ e *Elector }
