package main

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// A head is the member of a ring in this process.
type head struct{ next, judge *actor.PID }

func (h *head) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *Join:
		h.next = &actor.PID{Address: message.Address, Id: message.Id}
	case *Hop:
		if message.Left > 0 {
			ctx.Send(h.next, &Hop{Left: message.Left - 1})
		} else {
			ctx.Send(h.judge, &done{})
		}
	}
}

// A hopper is one in another.
type hopper struct {
	next *actor.PID
	hops uint64
}

func (h *hopper) Receive(ctx actor.Context) {
	switch message := ctx.Message().(type) {
	case *Join:
		h.next = &actor.PID{Address: message.Address, Id: message.Id}
		ctx.Respond(&Joined{})
	case *Hop:
		h.hops++
		ctx.Send(h.next, &Hop{Left: message.Left - 1})
	case *AskSeen:
		ctx.Respond(&Seen{Messages: h.hops})
	}
}

func rrings(s *stage, rings uint64) uint64 {
	rounds := s.pick(20, 1_000)
	partners := startAll(s, 3)
	judge := s.root.Spawn(long(&judge{stage: s, missing: rings}))
	var heads, hoppers []*actor.PID
	for range rings {
		head := s.root.Spawn(long(&head{judge: judge}))
		next := head
		for i := range partners {
			there := partners[len(partners)-1-i]
			hopper := there.spawn("hopper")
			ask[*Joined](there, hopper, &Join{Address: next.Address, Id: next.Id})
			hoppers = append(hoppers, hopper)
			next = hopper
		}
		s.root.Send(head, &Join{Address: next.Address, Id: next.Id})
		heads = append(heads, head)
	}
	hops := rounds * uint64(len(partners)+1)
	s.time(0, func() {
		for _, head := range heads {
			s.root.Send(head, &Hop{Left: hops})
		}
	})
	for _, hopper := range hoppers {
		if seen := ask[*Seen](partners[0], hopper, &AskSeen{}).Messages; seen != rounds {
			fail(fmt.Sprintf("wrong: the hops of a member should be %d and are %d", rounds, seen))
		}
	}
	return rings * hops
}
