package main

import "github.com/asynkron/protoactor-go/actor"

// A mall of chameneos.
type mall struct {
	left    uint64
	waiting *enter
}

type enter struct {
	who    *actor.PID
	colour int
}

// The colour of the other creature.
type met struct{ colour int }

type closed struct{}

func (m *mall) Receive(ctx actor.Context) {
	second, ok := ctx.Message().(*enter)
	switch {
	case !ok:
	case m.left == 0:
		ctx.Send(second.who, &closed{})
	case m.waiting == nil:
		m.waiting = second
	default:
		first := m.waiting
		m.waiting = nil
		m.left--
		ctx.Send(first.who, &met{second.colour})
		ctx.Send(second.who, &met{first.colour})
	}
}

// A creature of one of the colours 0, 1, 2.
type creature struct {
	mall, judge *actor.PID
	colour      int
	meetings    uint64
}

func (c *creature) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *begin:
		c.enter(ctx)
	case *met:
		// The third colour, or no other if both are alike.
		if c.colour != message.colour {
			c.colour = 3 - c.colour - message.colour
		}
		c.meetings++
		c.enter(ctx)
	case *closed:
		ctx.Send(c.judge, &done{c.meetings})
	}
}

func (c *creature) enter(ctx actor.Context) {
	ctx.Send(c.mall, &enter{ctx.Self(), c.colour})
}

func chameneos(s *stage) uint64 {
	const creatures = 10
	meetings := s.pick(1_000, 2_000_000)
	judge := s.root.Spawn(long(&judge{stage: s, missing: creatures}))
	mall := s.root.Spawn(long(&mall{left: meetings}))
	var all []*actor.PID
	for number := range creatures {
		all = append(all, s.root.Spawn(long(&creature{mall: mall, judge: judge, colour: number % 3})))
	}
	s.time(2*meetings, func() {
		for _, creature := range all {
			s.root.Send(creature, &begin{})
		}
	})
	return meetings
}

const talkers = 120

// A talker of big.
type talker struct {
	all          []*actor.PID
	judge        *actor.PID
	number, dice uint32
	left, pinged uint64
}

type hello struct{ from *actor.PID }

type answer struct{}

// Asks for the pings received.
type report struct{ judge *actor.PID }

func (t *talker) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *group:
		t.all = message.members
	case *begin:
		t.ping(ctx)
	case *hello:
		t.pinged++
		ctx.Send(message.from, &answer{})
	case *answer:
		t.left--
		if t.left > 0 {
			t.ping(ctx)
		} else {
			ctx.Send(t.judge, &done{0})
		}
	case *report:
		ctx.Send(message.judge, &done{t.pinged})
	}
}

// A linear congruential generator of 32 bits chooses the receiver.
func (t *talker) ping(ctx actor.Context) {
	t.dice = t.dice*1_664_525 + 1_013_904_223
	step := uint32(uint64(t.dice) * (talkers - 1) >> 32)
	ctx.Send(t.all[(t.number+1+step)%talkers], &hello{ctx.Self()})
}

func big(s *stage) uint64 {
	pings := s.pick(20, 20_000)
	done := s.root.Spawn(long(&judge{stage: s, missing: talkers}))
	var all []*actor.PID
	for number := range uint32(talkers) {
		all = append(all, s.root.Spawn(long(&talker{judge: done, number: number, dice: number * 0x9E37_79B9, left: pings})))
	}
	for _, talker := range all {
		s.root.Send(talker, &group{all})
	}
	s.time(0, func() {
		for _, talker := range all {
			s.root.Send(talker, &begin{})
		}
	})
	elapsed := s.elapsed
	reports := s.root.Spawn(long(&judge{stage: s, missing: talkers}))
	s.time(talkers*pings, func() {
		for _, talker := range all {
			s.root.Send(talker, &report{reports})
		}
	})
	s.elapsed = elapsed
	return 2 * talkers * pings
}
