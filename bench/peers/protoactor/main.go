// The workloads on Proto.Actor for Go.
//
// Actors that live long have the default mailbox, those that are created by the million the lock-free one, which the library
// calls cheaper to allocate. Each is scheduled on goroutines, 300 messages at a time, as is the default.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

func main() {
	go listen()
	if len(os.Args) == 3 && os.Args[1] == "partner" {
		host(os.Args[2])
	}
	if len(os.Args) != 6 || os.Args[2] != "--size" || os.Args[4] != "--workers" {
		fail("usage: protoactor WORKLOAD --size smoke|default --workers N")
	}
	workload, size := os.Args[1], os.Args[3]
	workers, err := strconv.Atoi(os.Args[5])
	if err != nil || workers < 1 || (size != "smoke" && size != "default") {
		fail("usage: protoactor WORKLOAD --size smoke|default --workers N")
	}
	runtime.GOMAXPROCS(workers)
	s := &stage{finish: make(chan finished, 1), smoke: size == "smoke"}
	s.root = quietSystem().Root
	play, known := map[string]func(*stage) uint64{
		"count":      count,
		"pingpong":   pingpong,
		"threadring": func(s *stage) uint64 { return rings(s, 1, 503, s.pick(5_000, 5_000_000)) },
		"ringmulti": func(s *stage) uint64 {
			return rings(s, s.pick(10, 100), s.pick(20, 100), s.pick(500, 100_000))
		},
		"fjcreate":    fjcreate,
		"skynet":      skynet,
		"chameneos":   chameneos,
		"big":         big,
		"fib":         fib,
		"executor":    executor,
		"repeat":      repeat,
		"rpingpong":   rpingpong,
		"rthroughput": rthroughput,
		"rcreate":     rcreate,
		"rrings-1":    func(s *stage) uint64 { return rrings(s, 1) },
		"rrings-32":   func(s *stage) uint64 { return rrings(s, s.pick(4, 32)) },
		"rrings-320":  func(s *stage) uint64 { return rrings(s, s.pick(4, 320)) },
	}[workload]
	if !known {
		fail("there is no workload `" + workload + "`")
	}
	ops := play(s)
	fmt.Printf(`{"peer":"protoactor","version":"%s","workload":"%s","ops":%d,"ns":%d}`+"\n",
		version(), workload, ops, s.elapsed.Nanoseconds())
	// Its memory is looked at until its input ends.
	select {}
}

// Listen ends the process with its standard input, whatever it is at.
func listen() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError}))
	}))
}

func fail(text string) {
	fmt.Fprintln(os.Stderr, text)
	os.Exit(1)
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/asynkron/protoactor-go" {
				return module.Version
			}
		}
	}
	return "unknown"
}

// A stage is the actor system, and how its final state is told.
type stage struct {
	root    *actor.RootContext
	finish  chan finished
	smoke   bool
	elapsed time.Duration
}

// The final state: its time, and its result.
type finished struct {
	at     time.Time
	result uint64
}

func (s *stage) pick(smoke, full uint64) uint64 {
	if s.smoke {
		return smoke
	}
	return full
}

// Reached is called by the actor that reaches the final state.
func (s *stage) reached(result uint64) {
	s.finish <- finished{time.Now(), result}
}

// Time calls start and waits for the final state.
func (s *stage) time(expected uint64, start func()) {
	started := time.Now()
	start()
	finished := <-s.finish
	if finished.result != expected {
		fail(fmt.Sprintf("wrong: the result should be %d and is %d", expected, finished.result))
	}
	s.elapsed = finished.at.Sub(started)
}

// Long is for actors that live long.
func long(a actor.Actor) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return a })
}

// Short is for actors that are created by the million.
func short(a actor.Actor) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(actor.UnboundedLockfree()))
}

// Begin has an actor begin, or go on.
type begin struct{}

// Done reports the end of an actor, with a number for the sum.
type done struct{ number uint64 }

// A judge waits until so many are done.
type judge struct {
	stage        *stage
	missing, sum uint64
}

func (j *judge) Receive(ctx actor.Context) {
	if message, ok := ctx.Message().(*done); ok {
		j.sum += message.number
		j.missing--
		if j.missing == 0 {
			j.stage.reached(j.sum)
		}
	}
}
