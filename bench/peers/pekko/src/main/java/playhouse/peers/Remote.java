package playhouse.peers;

import java.util.concurrent.CompletableFuture;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.ActorContext;
import org.apache.pekko.actor.typed.javadsl.Behaviors;
import playhouse.peers.Main.After;
import playhouse.peers.Main.Play;
import playhouse.peers.Main.Size;

/** What goes between processes, and the workloads of two. */
final class Remote {
    private static final int WINDOW = 10_000;
    private static final int ACKNOWLEDGE = 1_000;

    private Remote() {}

    /** What goes between them. */
    sealed interface Wire {
        /** What it is called on the way. */
        String manifest();
    }

    record Ping(long left, ActorRef<Wire> from) implements Wire {
        static final String MANIFEST = "P";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    record Pong(long left) implements Wire {
        static final String MANIFEST = "Q";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    record AskSeen(ActorRef<Wire> to) implements Wire {
        static final String MANIFEST = "A";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    record Seen(long messages) implements Wire {
        static final String MANIFEST = "S";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    record Item(long number) implements Wire {
        static final String MANIFEST = "I";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    record Took(long sum, long count) implements Wire {
        static final String MANIFEST = "T";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    record WantPonger(ActorRef<Wire> to) implements Wire {
        static final String MANIFEST = "W";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    record WantSink(ActorRef<Wire> source) implements Wire {
        static final String MANIFEST = "V";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    /** Who was wanted. */
    record Here(ActorRef<Wire> actor) implements Wire {
        static final String MANIFEST = "H";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    record Create(ActorRef<Wire> master) implements Wire {
        static final String MANIFEST = "C";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    record Created() implements Wire {
        static final String MANIFEST = "D";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    record WantHopper(ActorRef<Wire> next, ActorRef<Wire> to) implements Wire {
        static final String MANIFEST = "X";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    record Hop(long left) implements Wire {
        static final String MANIFEST = "N";

        @Override
        public String manifest() {
            return MANIFEST;
        }
    }

    /** What an actor is told in its own process only. */
    private enum Word implements Wire {
        BEGIN,
        REPORT;

        @Override
        public String manifest() {
            throw new IllegalStateException(this + " does not leave its process");
        }
    }

    /** The guardian of another process: typed actors have no remote deployment; the guardian starts them on request. */
    static Behavior<Wire> host() {
        return Behaviors.receive((context, message) -> {
            if (message instanceof Create create) {
                context.spawnAnonymous(creature(create.master));
            } else if (message instanceof WantPonger want) {
                want.to.tell(new Here(context.spawnAnonymous(new Ponger())));
            } else if (message instanceof WantSink want) {
                want.source.tell(new Here(context.spawnAnonymous(new Sink(want.source))));
            } else if (message instanceof WantHopper want) {
                want.to.tell(new Here(context.spawnAnonymous(new RemoteRings.Hopper(want.next))));
            }
            return Behaviors.same();
        });
    }

    // rpingpong

    private static final class Pinger extends Stateful<Wire> {
        private final ActorRef<Wire> self;
        private final CompletableFuture<Void> ready;
        private final Finish finish;
        private final Finish seen;
        private final long rounds;
        private ActorRef<Wire> ponger;

        Pinger(ActorRef<Wire> self, CompletableFuture<Void> ready, Finish finish, Finish seen, long rounds) {
            this.self = self;
            this.ready = ready;
            this.finish = finish;
            this.seen = seen;
            this.rounds = rounds;
        }

        @Override
        Behavior<Wire> receive(Wire message) {
            if (message instanceof Pong pong) {
                if (pong.left == 1) {
                    finish.reached(0);
                } else {
                    ponger.tell(new Ping(pong.left - 1, self));
                }
            } else if (message instanceof Here here) {
                ponger = here.actor;
                ready.complete(null);
            } else if (message instanceof Seen told) {
                seen.reached(told.messages);
            } else if (message == Word.BEGIN) {
                ponger.tell(new Ping(rounds, self));
            } else {
                ponger.tell(new AskSeen(self));
            }
            return this;
        }
    }

    private static final class Ponger extends Stateful<Wire> {
        private long seen;

        @Override
        Behavior<Wire> receive(Wire message) {
            if (message instanceof Ping ping) {
                seen++;
                ping.from.tell(new Pong(ping.left));
            } else if (message instanceof AskSeen ask) {
                ask.to.tell(new Seen(seen));
            }
            return this;
        }
    }

    static Play pingpong(ActorContext<?> context, Size size, Finish finish) {
        int rounds = size.pick(200, 100_000);
        var ready = new CompletableFuture<Void>();
        var seen = new Finish();
        ActorRef<Wire> pinger = context.spawnAnonymous(
                Behaviors.setup(own -> new Pinger(own.getSelf(), ready, finish, seen, rounds)));
        Partner.guardian(context, 0).tell(new WantPonger(pinger));
        var after = new After(rounds, seen, () -> pinger.tell(Word.REPORT));
        return new Play(2L * rounds, 0, ready, () -> pinger.tell(Word.BEGIN), after);
    }

    // rthroughput

    private static final class Source extends Stateful<Wire> {
        private final CompletableFuture<Void> ready;
        private final Finish finish;
        private final long messages;
        private ActorRef<Wire> sink;
        private long sent;

        Source(CompletableFuture<Void> ready, Finish finish, long messages) {
            this.ready = ready;
            this.finish = finish;
            this.messages = messages;
        }

        @Override
        Behavior<Wire> receive(Wire message) {
            if (message instanceof Took took) {
                if (took.count == messages) {
                    finish.reached(took.sum);
                } else {
                    send(ACKNOWLEDGE);
                }
            } else if (message instanceof Here here) {
                sink = here.actor;
                ready.complete(null);
            } else {
                send(WINDOW);
            }
            return this;
        }

        private void send(long count) {
            long until = Math.min(sent + count, messages);
            while (sent < until) {
                sent++;
                sink.tell(new Item(sent));
            }
        }
    }

    private static final class Sink extends Stateful<Wire> {
        private final ActorRef<Wire> source;
        private long sum;
        private long count;

        Sink(ActorRef<Wire> source) {
            this.source = source;
        }

        @Override
        Behavior<Wire> receive(Wire message) {
            if (message instanceof Item item) {
                sum += item.number;
                count++;
                if (count % ACKNOWLEDGE == 0) {
                    source.tell(new Took(sum, count));
                }
            }
            return this;
        }
    }

    static Play throughput(ActorContext<?> context, Size size, Finish finish) {
        long messages = size.pick(20_000, 2_000_000);
        var ready = new CompletableFuture<Void>();
        ActorRef<Wire> source = context.spawnAnonymous(new Source(ready, finish, messages));
        Partner.guardian(context, 0).tell(new WantSink(source));
        return new Play(messages, messages * (messages + 1) / 2, ready, () -> source.tell(Word.BEGIN), null);
    }

    // rcreate

    private static final class Master extends Stateful<Wire> {
        private final ActorRef<Wire> self;
        private final ActorRef<Wire> host;
        private final CompletableFuture<Void> ready;
        private final Finish finish;
        private final int actors;
        private int created;

        Master(ActorRef<Wire> self, ActorRef<Wire> host, CompletableFuture<Void> ready, Finish finish, int actors) {
            this.self = self;
            this.host = host;
            this.ready = ready;
            this.finish = finish;
            this.actors = actors;
        }

        @Override
        Behavior<Wire> receive(Wire message) {
            if (message instanceof Created) {
                created++;
                if (created == actors) {
                    finish.reached(created);
                }
            } else if (message instanceof Here) {
                ready.complete(null);
            } else {
                for (int i = 0; i < actors; i++) {
                    host.tell(new Create(self));
                }
            }
            return this;
        }
    }

    private static Behavior<Wire> creature(ActorRef<Wire> master) {
        return Behaviors.setup(context -> {
            master.tell(new Created());
            return Behaviors.empty();
        });
    }

    static Play create(ActorContext<?> context, Size size, Finish finish) {
        int actors = size.pick(100, 5_000);
        ActorRef<Wire> host = Partner.guardian(context, 0);
        var ready = new CompletableFuture<Void>();
        ActorRef<Wire> master =
                context.spawnAnonymous(Behaviors.setup(own -> new Master(own.getSelf(), host, ready, finish, actors)));
        // So that they are connected before.
        host.tell(new WantPonger(master));
        return new Play(actors, actors, ready, () -> master.tell(Word.BEGIN), null);
    }
}
