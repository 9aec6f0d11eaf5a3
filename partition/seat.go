package partition

import (
	"context"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/inject"
	"github.com/elector-go/elector/internal/rule"
)

// A seat is an election of the group.
type seat struct {
	number  int
	elector *elector.Elector
	view    *rule.View
}

// quiet are the options of a seat. The member's value is part of its note, and StallTimeout is by
// partition.
func (g *Group) quiet() elector.Options {
	o := g.o.Elector
	o.Value, o.StallTimeout = "", 0
	return o
}

func (g *Group) newSeat(number int, o elector.Options) (*seat, error) {
	inject.Seat(&o)
	e, err := elector.New(g.backend, g.seatName(number), &o)
	if err != nil {
		return nil, err
	}
	return &seat{number, e, inject.Inside(e).View}, nil
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
		marks[j] = g.seat(i).view.Mark()
	}
	outcomes := g.requests.LoadAll(ctx, names, g.options.RequestTimeout)
	for j, i := range seats {
		if o := outcomes[others+j]; o.Err == nil {
			g.seat(i).view.Read(o.Record, marks[j], g.now())
		}
	}
	return outcomes
}
