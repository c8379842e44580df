package main

import "github.com/asynkron/protoactor-go/actor"

// A child of fjcreate.
type child struct{}

type work struct{ number uint64 }

func (c *child) Receive(ctx actor.Context) {
	if message, ok := ctx.Message().(*work); ok {
		ctx.Send(ctx.Parent(), &done{2 * message.number})
		ctx.Stop(ctx.Self())
	}
}

type master struct {
	stage             *stage
	actors, done, sum uint64
}

func (m *master) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *begin:
		props := actor.PropsFromProducer(func() actor.Actor { return &child{} }, actor.WithMailbox(actor.UnboundedLockfree()))
		children := make([]*actor.PID, m.actors)
		for number := range children {
			children[number] = ctx.Spawn(props)
		}
		for number, child := range children {
			ctx.Send(child, &work{uint64(number)})
		}
	case *done:
		m.sum += message.number
		m.done++
		if m.done == m.actors {
			m.stage.reached(m.sum)
		}
	}
}

func fjcreate(s *stage) uint64 {
	actors := s.pick(2_000, 1_000_000)
	master := s.root.Spawn(long(&master{stage: s, actors: actors}))
	s.time(actors*(actors-1), func() { s.root.Send(master, &begin{}) })
	return actors
}

// A node of skynet.
type node struct{ number, leaves, missing, sum uint64 }

func (n *node) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		if n.leaves == 1 {
			ctx.Send(ctx.Parent(), &done{n.number})
			ctx.Stop(ctx.Self())
			return
		}
		below := n.leaves / 10
		for child := range uint64(10) {
			ctx.Spawn(short(&node{number: n.number + child*below, leaves: below, missing: 10}))
		}
	case *done:
		n.sum += message.number
		n.missing--
		if n.missing == 0 {
			ctx.Send(ctx.Parent(), &done{n.sum})
			ctx.Stop(ctx.Self())
		}
	}
}

// A call of fib.
type call struct{ n, missing, value uint64 }

func (c *call) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *actor.Started:
		if c.n < 2 {
			ctx.Send(ctx.Parent(), &done{c.n})
			ctx.Stop(ctx.Self())
			return
		}
		ctx.Spawn(short(&call{n: c.n - 1, missing: 2}))
		ctx.Spawn(short(&call{n: c.n - 2, missing: 2}))
	case *done:
		c.value += message.number
		c.missing--
		if c.missing == 0 {
			ctx.Send(ctx.Parent(), &done{c.value})
			ctx.Stop(ctx.Self())
		}
	}
}

// Above a tree, it hears the result of its root.
type above struct {
	stage *stage
	root  actor.Actor
}

func (a *above) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *begin:
		ctx.Spawn(short(a.root))
	case *done:
		a.stage.reached(message.number)
	}
}

func tree(s *stage, root actor.Actor, result uint64) {
	above := s.root.Spawn(long(&above{s, root}))
	s.time(result, func() { s.root.Send(above, &begin{}) })
}

func skynet(s *stage) uint64 {
	leaves := s.pick(1_000, 1_000_000)
	tree(s, &node{leaves: leaves, missing: 10}, leaves*(leaves-1)/2)
	return (leaves*10 - 1) / 9
}

func fib(s *stage) uint64 {
	n := s.pick(10, 25)
	value, actors := calls(n)
	tree(s, &call{n: n, missing: 2}, value)
	return actors
}

// Calls is the Fibonacci number of n, and how many calls its naive computation has.
func calls(n uint64) (value, actors uint64) {
	if n < 2 {
		return n, 1
	}
	first, firstCalls := calls(n - 1)
	second, secondCalls := calls(n - 2)
	return first + second, firstCalls + secondCalls + 1
}
