package partition

import (
	"context"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/inject"
	"github.com/elector-go/elector/internal/seats"
)

// A seat is an election of the group.
type seat struct {
	seats.Parts
	elector *elector.Elector
}

// quiet are the options of a seat. The member's value is part of its note, and StallTimeout is by
// partition.
func (g *Group) quiet() elector.Options {
	o := g.options
	o.Value, o.StallTimeout = "", 0
	return o
}

func (g *Group) newSeat(number int, o elector.Options) (*seat, error) {
	s := &seat{}
	b := inject.Backend{Backend: g.backend, Clock: g.clock, Random: g.random}
	e, err := elector.New(seats.Backend{Backend: b, Bind: func(p seats.Parts) { s.Parts = p }}, g.seatName(number), &o)
	s.elector = e
	return s, err
}

// seat returns the seat with a number.
func (g *Group) seat(number int) *seat {
	for len(g.seats) <= number {
		s, err := g.newSeat(len(g.seats), g.quiet())
		if err != nil {
			panic(err) // as seat 0, which New has made
		}
		g.seats = append(g.seats, s)
	}
	return g.seats[number]
}

// loadSeats reads some records, and those of some seats, which it enters into their views.
func (g *Group) loadSeats(ctx context.Context, seats []int, names ...string) []backends.Outcome {
	marks := make([]uint64, len(seats))
	others := len(names)
	for j, i := range seats {
		names = append(names, g.seatName(i))
		marks[j] = g.seat(i).View.Mark()
	}
	outcomes := g.requests.LoadAll(ctx, names, g.options.RequestTimeout)
	for j, i := range seats {
		if o := outcomes[others+j]; o.Err == nil {
			g.seat(i).View.Read(o.Record, marks[j], g.now())
		}
	}
	return outcomes
}
