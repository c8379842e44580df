package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"
)

// How long the other process may take to answer.
const patience = 30 * time.Second

// A partner is another process, where actors of known kinds are spawned.
type partner struct {
	remote  *remote.Remote
	root    *actor.RootContext
	address string
}

// Listening is a remote on the loopback.
func listening(system *actor.ActorSystem, kinds ...*remote.Kind) *remote.Remote {
	r := remote.NewRemote(system, remote.Configure("127.0.0.1", 0, remote.WithKinds(kinds...)))
	r.Start()
	return r
}

// Host is another process: it says where it listens, and ends with its input.
func host(workers string) {
	if count, err := strconv.Atoi(workers); err == nil {
		runtime.GOMAXPROCS(count)
	}
	system := quietSystem()
	listening(system, kinds()...)
	fmt.Println(system.Address())
	select {}
}

// Start starts another process, which ends with this one.
func start(s *stage) *partner {
	return startAll(s, 1)[0]
}

// StartAll starts this number of them, and a remote in this process.
func startAll(s *stage, count int) []*partner {
	r := listening(s.root.ActorSystem())
	partners := make([]*partner, count)
	for i := range partners {
		partners[i] = &partner{r, s.root, startProcess()}
	}
	return partners
}

// StartProcess returns where it listens.
func startProcess() string {
	program, err := os.Executable()
	if err != nil {
		fail(err.Error())
	}
	command := exec.Command(program, "partner", strconv.Itoa(runtime.GOMAXPROCS(0)))
	command.Stderr = os.Stderr
	_, inErr := command.StdinPipe()
	out, outErr := command.StdoutPipe()
	if inErr != nil || outErr != nil || command.Start() != nil {
		fail("the other process cannot be started")
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		fail("the other process does not say where it listens")
	}
	go func() {
		// Which holds its input, too.
		_ = command.Wait()
		fail("the other process has ended")
	}()
	return strings.TrimSpace(address)
}

// Spawn spawns an actor in that process, and waits for it.
func (p *partner) spawn(kind string) *actor.PID {
	spawned, err := p.remote.Spawn(p.address, kind, patience)
	if err != nil || spawned.Pid == nil {
		fail(fmt.Sprintf("no %s is spawned in the other process: %v", kind, err))
	}
	return spawned.Pid
}

// Ask waits for an answer.
func ask[A proto.Message](p *partner, to *actor.PID, message proto.Message) A {
	answer, err := p.root.RequestFuture(to, message, patience).Result()
	typed, ok := answer.(A)
	if err != nil || !ok {
		fail(fmt.Sprintf("the other process answers %v: %v", answer, err))
	}
	return typed
}
