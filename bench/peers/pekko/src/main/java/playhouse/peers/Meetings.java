package playhouse.peers;

import java.util.ArrayList;
import java.util.List;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.ActorContext;
import org.apache.pekko.actor.typed.javadsl.Behaviors;
import playhouse.peers.Main.After;
import playhouse.peers.Main.Play;
import playhouse.peers.Main.Size;

/** Workloads whose actors meet. */
final class Meetings {
    private static final int CREATURES = 10;
    private static final int TALKERS = 120;

    private Meetings() {}

    // chameneos

    private enum Colour {
        BLUE,
        RED,
        YELLOW;

        private static final Colour[] ALL = values();

        /** The third colour, or no other if both are alike. */
        Colour complement(Colour other) {
            return this == other ? this : ALL[3 - ordinal() - other.ordinal()];
        }
    }

    private record Enter(ActorRef<Live> who, Colour colour) {}

    private sealed interface Live {}

    private enum Order implements Live {
        BEGIN,
        CLOSED
    }

    private record Met(Colour colour) implements Live {}

    private static final class Mall extends Stateful<Enter> {
        private int left;
        private Enter waiting;

        Mall(int left) {
            this.left = left;
        }

        @Override
        Behavior<Enter> receive(Enter second) {
            if (left == 0) {
                second.who.tell(Order.CLOSED);
            } else if (waiting == null) {
                waiting = second;
            } else {
                waiting.who.tell(new Met(second.colour));
                second.who.tell(new Met(waiting.colour));
                waiting = null;
                left--;
            }
            return this;
        }
    }

    private static final class Creature extends Stateful<Live> {
        private final ActorRef<Live> self;
        private final ActorRef<Enter> mall;
        private final ActorRef<Judge.Done> judge;
        private Colour colour;
        private int meetings;

        Creature(ActorRef<Live> self, ActorRef<Enter> mall, ActorRef<Judge.Done> judge, Colour colour) {
            this.self = self;
            this.mall = mall;
            this.judge = judge;
            this.colour = colour;
        }

        @Override
        Behavior<Live> receive(Live message) {
            if (message == Order.CLOSED) {
                judge.tell(new Judge.Done(meetings));
                return this;
            }
            if (message instanceof Met met) {
                colour = colour.complement(met.colour);
                meetings++;
            }
            mall.tell(new Enter(self, colour));
            return this;
        }
    }

    static Play chameneos(ActorContext<?> context, Size size, Finish finish) {
        int meetings = size.pick(1_000, 2_000_000);
        var judge = context.spawnAnonymous(new Judge(finish, CREATURES));
        ActorRef<Enter> mall = context.spawnAnonymous(new Mall(meetings));
        List<ActorRef<Live>> creatures = new ArrayList<>();
        for (int number = 0; number < CREATURES; number++) {
            Colour colour = Colour.ALL[number % 3];
            creatures.add(context.spawnAnonymous(
                    Behaviors.setup(own -> new Creature(own.getSelf(), mall, judge, colour))));
        }
        return new Play(meetings, 2L * meetings, () -> creatures.forEach(creature -> creature.tell(Order.BEGIN)));
    }

    // big

    private sealed interface Talk {}

    private enum Word implements Talk {
        BEGIN,
        PONG
    }

    private record Ping(ActorRef<Talk> from) implements Talk {}

    private record Meet(List<ActorRef<Talk>> all) implements Talk {}

    private record Report(ActorRef<Judge.Done> to) implements Talk {}

    private static final class Talker extends Stateful<Talk> {
        private final ActorRef<Judge.Done> judge;
        private final Ping ping;
        private final int number;
        private List<ActorRef<Talk>> all;
        private int dice;
        private int left;
        private long pinged;

        Talker(ActorRef<Talk> self, ActorRef<Judge.Done> judge, int number, int left) {
            this.judge = judge;
            this.ping = new Ping(self);
            this.number = number;
            this.dice = number * 0x9E3779B9;
            this.left = left;
        }

        @Override
        Behavior<Talk> receive(Talk message) {
            if (message instanceof Ping other) {
                pinged++;
                other.from.tell(Word.PONG);
            } else if (message == Word.PONG) {
                left--;
                if (left > 0) {
                    ping();
                } else {
                    judge.tell(new Judge.Done(0));
                }
            } else if (message instanceof Meet meet) {
                all = meet.all;
            } else if (message instanceof Report report) {
                report.to.tell(new Judge.Done(pinged));
            } else {
                ping();
            }
            return this;
        }

        /** A linear congruential generator of 32 bits chooses the receiver. */
        private void ping() {
            dice = dice * 1_664_525 + 1_013_904_223;
            int step = (int) ((Integer.toUnsignedLong(dice) * (TALKERS - 1)) >>> 32);
            all.get((number + 1 + step) % TALKERS).tell(ping);
        }
    }

    static Play big(ActorContext<?> context, Size size, Finish finish) {
        int pings = size.pick(20, 20_000);
        var judge = context.spawnAnonymous(new Judge(finish, TALKERS));
        List<ActorRef<Talk>> all = new ArrayList<>();
        for (int i = 0; i < TALKERS; i++) {
            int number = i;
            all.add(context.spawnAnonymous(
                    Behaviors.setup(own -> new Talker(own.getSelf(), judge, number, pings))));
        }
        all.forEach(talker -> talker.tell(new Meet(all)));
        var counted = new Finish();
        var reports = context.spawnAnonymous(new Judge(counted, TALKERS));
        var after = new After((long) TALKERS * pings, counted, () -> all.forEach(talker -> talker.tell(new Report(reports))));
        return new Play(2L * TALKERS * pings, 0, () -> all.forEach(talker -> talker.tell(Word.BEGIN)), after);
    }
}
