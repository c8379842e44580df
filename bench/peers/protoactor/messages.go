package main

import "github.com/asynkron/protoactor-go/actor"

// The counter of count.
type counter struct{ count uint64 }

type increment struct{}

type get struct{}

func (c *counter) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *increment:
		c.count++
	case *get:
		ctx.Respond(&done{c.count})
	}
}

type producer struct {
	stage      *stage
	counter    *actor.PID
	increments uint64
}

func (p *producer) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *begin:
		one := &increment{}
		for range p.increments {
			ctx.Send(p.counter, one)
		}
		ctx.Request(p.counter, &get{})
	case *done:
		p.stage.reached(message.number)
	}
}

func count(s *stage) uint64 {
	increments := s.pick(10_000, 10_000_000)
	counter := s.root.Spawn(long(&counter{}))
	producer := s.root.Spawn(long(&producer{s, counter, increments}))
	s.time(increments, func() { s.root.Send(producer, &begin{}) })
	return increments
}

// A player of pingpong; one of them counts.
type player struct {
	stage            *stage
	other            *actor.PID
	received, rounds uint64
}

type ping struct{}

type meet struct{ other *actor.PID }

func (p *player) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *meet:
		p.other = message.other
	case *ping:
		p.received++
		// The first one starts it and is not counted.
		if p.stage != nil && p.received > p.rounds {
			p.stage.reached(p.received - 1)
			return
		}
		ctx.Send(p.other, message)
	}
}

func pingpong(s *stage) uint64 {
	rounds := s.pick(2_000, 2_000_000)
	pinger := s.root.Spawn(long(&player{stage: s, rounds: rounds}))
	ponger := s.root.Spawn(long(&player{other: pinger}))
	s.root.Send(pinger, &meet{ponger})
	s.time(rounds, func() { s.root.Send(pinger, &ping{}) })
	return 2 * rounds
}

// A member of a ring.
type member struct {
	next, judge *actor.PID
	position    uint64
}

type token struct{ left uint64 }

func (m *member) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *meet:
		m.next = message.other
	case *token:
		if message.left == 0 {
			ctx.Send(m.judge, &done{m.position})
			return
		}
		// The token belongs to its receiver.
		message.left--
		ctx.Send(m.next, message)
	}
}

func rings(s *stage, rings, members, hops uint64) uint64 {
	judge := s.root.Spawn(long(&judge{stage: s, missing: rings}))
	var firsts []*actor.PID
	for range rings {
		last := s.root.Spawn(long(&member{judge: judge, position: members - 1}))
		first := last
		for position := members - 1; position > 0; position-- {
			first = s.root.Spawn(long(&member{next: first, judge: judge, position: position - 1}))
		}
		s.root.Send(last, &meet{first})
		firsts = append(firsts, first)
	}
	s.time(rings*(hops%members), func() {
		for _, first := range firsts {
			s.root.Send(first, &token{hops})
		}
	})
	return rings * hops
}

// A member of a group of executor.
type flooder struct {
	group []*actor.PID
	next  int
	// Messages still to come: one per send of its share, and the start message.
	sendsLeft, recsLeft uint64
	judge               *actor.PID
}

type group struct{ members []*actor.PID }

type flood struct{}

func (f *flooder) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *group:
		f.group = message.members
	case *begin:
		for _, member := range f.group {
			ctx.Send(member, &flood{})
		}
	case *flood:
		if f.sendsLeft > 0 {
			f.sendsLeft--
			ctx.Send(f.group[f.next], message)
			f.next = (f.next + 1) % len(f.group)
		}
		f.recsLeft--
		if f.recsLeft == 0 {
			ctx.Send(f.judge, &done{f.sendsLeft})
		}
	}
}

func executor(s *stage) uint64 {
	groups, sends := s.pick(4, 400), s.pick(100, 400)
	judge := s.root.Spawn(long(&judge{stage: s, missing: groups * 100}))
	var firsts []*actor.PID
	for range groups {
		var members []*actor.PID
		for range 100 {
			members = append(members, s.root.Spawn(long(&flooder{sendsLeft: sends, recsLeft: sends + 1, judge: judge})))
		}
		for _, member := range members {
			s.root.Send(member, &group{members})
		}
		firsts = append(firsts, members[0])
	}
	s.time(0, func() {
		for _, first := range firsts {
			s.root.Send(first, &begin{})
		}
	})
	return groups * 100 * sends
}

// A server of repeat.
type server struct {
	client   *actor.PID
	requests uint64
}

type request struct{}

func (s *server) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*request); ok {
		s.requests++
		ctx.Send(s.client, &done{s.requests})
	}
}

type client struct {
	stage                    *stage
	servers                  []*actor.PID
	replies, roundsLeft, sum uint64
}

func (c *client) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *group:
		c.servers = message.members
	case *begin:
		c.scatter(ctx)
	case *done:
		c.sum += message.number
		c.replies++
		if c.replies < uint64(len(c.servers)) {
			return
		}
		c.replies = 0
		c.roundsLeft--
		if c.roundsLeft > 0 {
			c.scatter(ctx)
		} else {
			c.stage.reached(c.sum)
		}
	}
}

func (c *client) scatter(ctx actor.Context) {
	one := &request{}
	for _, server := range c.servers {
		ctx.Send(server, one)
	}
}

func repeat(s *stage) uint64 {
	servers, rounds := s.pick(2_500, 100_000), s.pick(4, 40)
	client := s.root.Spawn(long(&client{stage: s, roundsLeft: rounds}))
	var all []*actor.PID
	for range servers {
		all = append(all, s.root.Spawn(long(&server{client: client})))
	}
	s.root.Send(client, &group{all})
	s.time(servers*(rounds*(rounds+1)/2), func() { s.root.Send(client, &begin{}) })
	return 2 * servers * rounds
}
