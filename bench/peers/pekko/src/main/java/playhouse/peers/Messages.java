package playhouse.peers;

import java.util.ArrayList;
import java.util.List;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.ActorContext;
import org.apache.pekko.actor.typed.javadsl.Behaviors;
import playhouse.peers.Main.Play;
import playhouse.peers.Main.Size;

/** Workloads of existing actors that send messages. */
final class Messages {
    /** Messages that an actor with a long list to send sends before it lets others run and goes on by a message to itself. */
    private static final int SLICE = 1_000;

    private Messages() {}

    // count

    private sealed interface Count {}

    private enum Increment implements Count {
        ONE
    }

    private record Get(ActorRef<Produce> from) implements Count {}

    private sealed interface Produce {}

    private enum Slice implements Produce {
        NEXT
    }

    private record Counted(long count) implements Produce {}

    private static final class Counter extends Stateful<Count> {
        private long count;

        @Override
        Behavior<Count> receive(Count message) {
            if (message instanceof Get get) {
                get.from.tell(new Counted(count));
            } else {
                count++;
            }
            return this;
        }
    }

    private static final class Producer extends Stateful<Produce> {
        private final ActorRef<Produce> self;
        private final ActorRef<Count> counter;
        private final Finish finish;
        private int left;

        Producer(ActorRef<Produce> self, ActorRef<Count> counter, Finish finish, int left) {
            this.self = self;
            this.counter = counter;
            this.finish = finish;
            this.left = left;
        }

        @Override
        Behavior<Produce> receive(Produce message) {
            if (message instanceof Counted counted) {
                finish.reached(counted.count);
                return this;
            }
            int slice = Math.min(left, SLICE);
            for (int i = 0; i < slice; i++) {
                counter.tell(Increment.ONE);
            }
            left -= slice;
            if (left > 0) {
                self.tell(Slice.NEXT);
            } else {
                counter.tell(new Get(self));
            }
            return this;
        }
    }

    static Play count(ActorContext<?> context, Size size, Finish finish) {
        int increments = size.pick(10_000, 10_000_000);
        ActorRef<Count> counter = context.spawnAnonymous(new Counter());
        ActorRef<Produce> producer = context.spawnAnonymous(
                Behaviors.setup(own -> new Producer(own.getSelf(), counter, finish, increments)));
        return new Play(increments, increments, () -> producer.tell(Slice.NEXT));
    }

    // pingpong

    private sealed interface Bounce {}

    private enum Ping implements Bounce {
        PING
    }

    private record Meet(ActorRef<Bounce> other) implements Bounce {}

    /** One of two has a finish, and counts for both. */
    private static final class Player extends Stateful<Bounce> {
        private final Finish finish;
        private final int rounds;
        private ActorRef<Bounce> other;
        private int received;

        Player(Finish finish, int rounds, ActorRef<Bounce> other) {
            this.finish = finish;
            this.rounds = rounds;
            this.other = other;
        }

        @Override
        Behavior<Bounce> receive(Bounce message) {
            if (message instanceof Meet meet) {
                other = meet.other;
                return this;
            }
            // The first one starts it and is not counted.
            if (received++ == rounds && finish != null) {
                finish.reached(received - 1);
            } else {
                other.tell(Ping.PING);
            }
            return this;
        }
    }

    static Play pingpong(ActorContext<?> context, Size size, Finish finish) {
        int rounds = size.pick(2_000, 2_000_000);
        ActorRef<Bounce> pinger = context.spawnAnonymous(new Player(finish, rounds, null));
        ActorRef<Bounce> ponger = context.spawnAnonymous(new Player(null, rounds, pinger));
        pinger.tell(new Meet(ponger));
        return new Play(2L * rounds, rounds, () -> pinger.tell(Ping.PING));
    }

    // executor

    private sealed interface Flood {}

    private enum Token implements Flood {
        TOKEN,
        BEGIN
    }

    private record Group(List<ActorRef<Flood>> members) implements Flood {}

    private static final class Member extends Stateful<Flood> {
        private final ActorRef<Judge.Done> judge;
        private List<ActorRef<Flood>> group;
        private int next;
        private int sendsLeft;
        /** Messages still to come: one per send of its share, and the start message. */
        private int recsLeft;

        Member(ActorRef<Judge.Done> judge, int sends) {
            this.judge = judge;
            this.sendsLeft = sends;
            this.recsLeft = sends + 1;
        }

        @Override
        Behavior<Flood> receive(Flood message) {
            if (message == Token.TOKEN) {
                if (sendsLeft > 0) {
                    sendsLeft--;
                    group.get(next).tell(Token.TOKEN);
                    next = next + 1 < group.size() ? next + 1 : 0;
                }
                recsLeft--;
                if (recsLeft == 0) {
                    judge.tell(new Judge.Done(sendsLeft));
                }
            } else if (message instanceof Group meet) {
                group = meet.members;
            } else {
                group.forEach(member -> member.tell(Token.TOKEN));
            }
            return this;
        }
    }

    static Play executor(ActorContext<?> context, Size size, Finish finish) {
        int groups = size.pick(4, 400);
        int members = 100;
        int sends = size.pick(100, 400);
        var judge = context.spawnAnonymous(new Judge(finish, groups * members));
        List<ActorRef<Flood>> firsts = new ArrayList<>();
        for (int number = 0; number < groups; number++) {
            List<ActorRef<Flood>> group = new ArrayList<>();
            for (int i = 0; i < members; i++) {
                group.add(context.spawnAnonymous(new Member(judge, sends)));
            }
            group.forEach(member -> member.tell(new Group(group)));
            firsts.add(group.get(0));
        }
        long ops = (long) groups * members * sends;
        return new Play(ops, 0, () -> firsts.forEach(first -> first.tell(Token.BEGIN)));
    }

    // repeat

    private enum Request {
        REQUEST
    }

    private sealed interface Gather {}

    private enum Scatter implements Gather {
        NEXT
    }

    private record Reply(int requests) implements Gather {}

    private record Servers(List<ActorRef<Request>> all) implements Gather {}

    private static final class Server extends Stateful<Request> {
        private final ActorRef<Gather> client;
        private int requests;

        Server(ActorRef<Gather> client) {
            this.client = client;
        }

        @Override
        Behavior<Request> receive(Request request) {
            requests++;
            client.tell(new Reply(requests));
            return this;
        }
    }

    private static final class Client extends Stateful<Gather> {
        private final ActorRef<Gather> self;
        private final Finish finish;
        private List<ActorRef<Request>> servers;
        private int sent;
        private int replies;
        private int roundsLeft;
        private long sum;

        Client(ActorRef<Gather> self, Finish finish, int rounds) {
            this.self = self;
            this.finish = finish;
            this.roundsLeft = rounds;
        }

        @Override
        Behavior<Gather> receive(Gather message) {
            if (message instanceof Reply reply) {
                replied(reply.requests);
            } else if (message instanceof Servers meet) {
                servers = meet.all;
            } else {
                int until = Math.min(sent + SLICE, servers.size());
                for (; sent < until; sent++) {
                    servers.get(sent).tell(Request.REQUEST);
                }
                if (sent < servers.size()) {
                    self.tell(Scatter.NEXT);
                }
            }
            return this;
        }

        private void replied(int requests) {
            sum += requests;
            replies++;
            if (replies < servers.size()) {
                return;
            }
            sent = 0;
            replies = 0;
            roundsLeft--;
            if (roundsLeft > 0) {
                self.tell(Scatter.NEXT);
            } else {
                finish.reached(sum);
            }
        }
    }

    static Play repeat(ActorContext<?> context, Size size, Finish finish) {
        int servers = size.pick(2_500, 100_000);
        int rounds = size.pick(4, 40);
        ActorRef<Gather> client =
                context.spawnAnonymous(Behaviors.setup(own -> new Client(own.getSelf(), finish, rounds)));
        List<ActorRef<Request>> all = new ArrayList<>(servers);
        for (int i = 0; i < servers; i++) {
            all.add(context.spawnAnonymous(new Server(client)));
        }
        client.tell(new Servers(all));
        long sum = servers * (rounds * (rounds + 1L) / 2);
        return new Play(2L * servers * rounds, sum, () -> client.tell(Scatter.NEXT));
    }
}
