package playhouse.peers;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.ActorContext;
import org.apache.pekko.actor.typed.javadsl.Behaviors;
import playhouse.peers.Main.Play;
import playhouse.peers.Main.Size;

/** Workloads that create actors. */
final class Creation {
    /** Actors created, or told to work, before the master lets others run and goes on by a message to itself. */
    private static final int SLICE = 1_000;

    /** Children of an actor of skynet. */
    private static final int DEGREE = 10;

    private Creation() {}

    // fjcreate

    private record Work(int number) {}

    private sealed interface Employ {}

    private enum Slice implements Employ {
        NEXT
    }

    private record Done(long result) implements Employ {}

    private static final class Child extends Stateful<Work> {
        private final ActorRef<Employ> master;

        Child(ActorRef<Employ> master) {
            this.master = master;
        }

        @Override
        Behavior<Work> receive(Work work) {
            master.tell(new Done(2L * work.number));
            return Behaviors.stopped();
        }
    }

    private static final class Master extends Stateful<Employ> {
        private final ActorContext<Employ> context;
        private final Finish finish;
        private final int actors;
        private final List<ActorRef<Work>> children;
        private int employed;
        private int done;
        private long sum;

        Master(ActorContext<Employ> context, Finish finish, int actors) {
            this.context = context;
            this.finish = finish;
            this.actors = actors;
            this.children = new ArrayList<>(actors);
        }

        @Override
        Behavior<Employ> receive(Employ message) {
            if (message instanceof Done acknowledged) {
                sum += acknowledged.result;
                done++;
                if (done == actors) {
                    finish.reached(sum);
                }
            } else if (children.size() < actors) {
                int until = Math.min(children.size() + SLICE, actors);
                while (children.size() < until) {
                    children.add(context.spawnAnonymous(new Child(context.getSelf())));
                }
                context.getSelf().tell(Slice.NEXT);
            } else {
                int until = Math.min(employed + SLICE, actors);
                for (; employed < until; employed++) {
                    children.get(employed).tell(new Work(employed));
                }
                if (employed < actors) {
                    context.getSelf().tell(Slice.NEXT);
                }
            }
            return this;
        }
    }

    static Play fjcreate(ActorContext<?> context, Size size, Finish finish) {
        int actors = size.pick(2_000, 1_000_000);
        ActorRef<Employ> master =
                context.spawnAnonymous(Behaviors.setup(own -> new Master(own, finish, actors)));
        return new Play(actors, actors * (actors - 1L), () -> master.tell(Slice.NEXT));
    }

    // skynet, fib: a node tells its parent a number, which is the sum of its children's

    private record Value(long value) {}

    private static final class Sum extends Stateful<Value> {
        private final ActorRef<Value> parent;
        private int missing;
        private long sum;

        Sum(ActorRef<Value> parent, int missing) {
            this.parent = parent;
            this.missing = missing;
        }

        @Override
        Behavior<Value> receive(Value message) {
            sum += message.value;
            missing--;
            if (missing > 0) {
                return this;
            }
            parent.tell(new Value(sum));
            return Behaviors.stopped();
        }
    }

    private static Behavior<Value> node(ActorRef<Value> parent, long number, int leaves) {
        return Behaviors.setup(context -> {
            if (leaves == 1) {
                parent.tell(new Value(number));
                return Behaviors.stopped();
            }
            int below = leaves / DEGREE;
            for (int child = 0; child < DEGREE; child++) {
                context.spawnAnonymous(node(context.getSelf(), number + (long) child * below, below));
            }
            return new Sum(parent, DEGREE);
        });
    }

    private static Behavior<Value> call(ActorRef<Value> parent, int n) {
        return Behaviors.setup(context -> {
            if (n < 2) {
                parent.tell(new Value(n));
                return Behaviors.stopped();
            }
            context.spawnAnonymous(call(context.getSelf(), n - 1));
            context.spawnAnonymous(call(context.getSelf(), n - 2));
            return new Sum(parent, 2);
        });
    }

    /** The root's parent, which creates it when it is told a negative number, as no node tells. */
    private static Play tree(
            ActorContext<?> context,
            Finish finish,
            long ops,
            long expected,
            Function<ActorRef<Value>, Behavior<Value>> root) {
        ActorRef<Value> above = context.spawnAnonymous(Behaviors.receive((own, message) -> {
            if (message.value >= 0) {
                finish.reached(message.value);
            } else {
                own.spawnAnonymous(root.apply(own.getSelf()));
            }
            return Behaviors.same();
        }));
        return new Play(ops, expected, () -> above.tell(new Value(-1)));
    }

    static Play skynet(ActorContext<?> context, Size size, Finish finish) {
        int leaves = size.pick(1_000, 1_000_000);
        long ops = (leaves * (long) DEGREE - 1) / (DEGREE - 1);
        return tree(context, finish, ops, leaves * (leaves - 1L) / 2, parent -> node(parent, 0, leaves));
    }

    static Play fib(ActorContext<?> context, Size size, Finish finish) {
        int n = size.pick(10, 25);
        return tree(context, finish, calls(n), value(n), parent -> call(parent, n));
    }

    private static long value(int n) {
        return n < 2 ? n : value(n - 1) + value(n - 2);
    }

    /** How many calls the naive computation has. */
    private static long calls(int n) {
        return n < 2 ? 1 : calls(n - 1) + calls(n - 2) + 1;
    }
}
