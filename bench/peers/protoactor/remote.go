package main

import (
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
)

// Kinds are the actors that another process spawns.
func kinds() []*remote.Kind {
	var master atomic.Pointer[actor.PID]
	kind := func(name string, producer actor.Producer) *remote.Kind {
		return remote.NewKind(name, actor.PropsFromProducer(producer))
	}
	return []*remote.Kind{
		kind("ponger", func() actor.Actor { return &ponger{} }),
		kind("sink", func() actor.Actor { return &sink{} }),
		kind("hopper", func() actor.Actor { return &hopper{} }),
		kind("registrar", func() actor.Actor { return &registrar{&master} }),
		kind("settler", func() actor.Actor { return &settler{master.Load()} }),
	}
}

// -- rpingpong

type pinger struct {
	stage  *stage
	ponger *actor.PID
	left   uint64
}

func (p *pinger) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *begin:
		ctx.Request(p.ponger, &Ping{Left: p.left})
	case *Pong:
		p.left = message.Left - 1
		if p.left == 0 {
			p.stage.reached(0)
		} else {
			ctx.Request(p.ponger, &Ping{Left: p.left})
		}
	}
}

type ponger struct{ seen uint64 }

func (p *ponger) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *Ping:
		p.seen++
		ctx.Respond(&Pong{Left: message.Left})
	case *AskSeen:
		ctx.Respond(&Seen{Messages: p.seen})
	}
}

func rpingpong(s *stage) uint64 {
	rounds := s.pick(200, 100_000)
	there := start(s)
	ponger := there.spawn("ponger")
	pinger := s.root.Spawn(long(&pinger{s, ponger, rounds}))
	s.time(0, func() { s.root.Send(pinger, &begin{}) })
	if seen := ask[*Seen](there, ponger, &AskSeen{}).Messages; seen != rounds {
		fail(fmt.Sprintf("wrong: the pings seen should be %d and are %d", rounds, seen))
	}
	return 2 * rounds
}

// -- rthroughput

const (
	window      = 10_000
	acknowledge = 1_000
)

type source struct {
	stage          *stage
	sink           *actor.PID
	messages, sent uint64
}

func (s *source) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *begin:
		s.send(ctx, window)
	case *Took:
		if message.Count == s.messages {
			s.stage.reached(message.Sum)
		} else {
			s.send(ctx, acknowledge)
		}
	}
}

func (s *source) send(ctx actor.Context, count uint64) {
	for range min(count, s.messages-s.sent) {
		s.sent++
		ctx.Send(s.sink, &Item{Number: s.sent})
	}
}

type sink struct {
	sum, count, acknowledge uint64
	to                      *actor.PID
}

func (s *sink) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *DrainTo:
		s.acknowledge = message.Acknowledge
		s.to = &actor.PID{Address: message.Address, Id: message.Id}
		ctx.Respond(&Drains{})
	case *Item:
		s.sum += message.Number
		s.count++
		if s.count%s.acknowledge == 0 {
			ctx.Send(s.to, &Took{Sum: s.sum, Count: s.count})
		}
	}
}

func rthroughput(s *stage) uint64 {
	messages := s.pick(20_000, 2_000_000)
	there := start(s)
	sink := there.spawn("sink")
	source := s.root.Spawn(long(&source{stage: s, sink: sink, messages: messages}))
	ask[*Drains](there, sink, &DrainTo{Acknowledge: acknowledge, Address: source.Address, Id: source.Id})
	s.time(messages*(messages+1)/2, func() { s.root.Send(source, &begin{}) })
	return messages
}

// -- rcreate

// A registrar receives the master of the settlers, because actors that are spawned by their kind have no arguments.
type registrar struct{ master *atomic.Pointer[actor.PID] }

func (r *registrar) Receive(ctx actor.Context) {
	if message, ok := ctx.Message().(*Meet); ok {
		r.master.Store(&actor.PID{Address: message.Address, Id: message.Id})
		ctx.Respond(&Met{})
	}
}

type settler struct{ master *actor.PID }

func (c *settler) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Started); ok {
		ctx.Send(c.master, &Created{})
	}
}

type settling struct {
	stage           *stage
	activator       *actor.PID
	actors, created uint64
	made            []*actor.PID
}

func (m *settling) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *begin:
		for range m.actors {
			ctx.Request(m.activator, &remote.ActorPidRequest{Kind: "settler"})
		}
	case *remote.ActorPidResponse:
		m.made = append(m.made, message.Pid)
	case *Created:
		m.created++
		if m.created == m.actors {
			m.stage.reached(m.created)
		}
	}
}

func rcreate(s *stage) uint64 {
	actors := s.pick(100, 5_000)
	there := start(s)
	activator := there.remote.ActivatorForAddress(there.address)
	master := s.root.Spawn(long(&settling{stage: s, activator: activator, actors: actors}))
	ask[*Met](there, there.spawn("registrar"), &Meet{Address: master.Address, Id: master.Id})
	s.time(actors, func() { s.root.Send(master, &begin{}) })
	return actors
}
