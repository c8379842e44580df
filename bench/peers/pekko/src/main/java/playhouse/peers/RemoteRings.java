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
import playhouse.peers.Remote.AskSeen;
import playhouse.peers.Remote.Here;
import playhouse.peers.Remote.Hop;
import playhouse.peers.Remote.Seen;
import playhouse.peers.Remote.WantHopper;
import playhouse.peers.Remote.Wire;

/** Tokens that go round over four processes. */
final class RemoteRings {
    /** Other processes. */
    static final int PARTNERS = 3;

    private RemoteRings() {}

    /** The member of a ring in this process; it has the others created, from the last one to the first. */
    private static final class Head extends Stateful<Wire> {
        private final ActorRef<Wire> self;
        private final List<ActorRef<Wire>> hosts;
        private final ActorRef<Judge.Done> ready;
        private final ActorRef<Judge.Done> judge;
        private final ActorRef<Judge.Done> hops;
        private final List<ActorRef<Wire>> members = new ArrayList<>();
        private ActorRef<Wire> next;

        Head(
                ActorRef<Wire> self,
                List<ActorRef<Wire>> hosts,
                ActorRef<Judge.Done> ready,
                ActorRef<Judge.Done> judge,
                ActorRef<Judge.Done> hops) {
            this.self = self;
            this.hosts = hosts;
            this.ready = ready;
            this.judge = judge;
            this.hops = hops;
            this.next = self;
            wantNext();
        }

        private void wantNext() {
            hosts.get(PARTNERS - 1 - members.size()).tell(new WantHopper(next, self));
        }

        @Override
        Behavior<Wire> receive(Wire message) {
            if (message instanceof Hop hop) {
                if (hop.left() > 0) {
                    next.tell(new Hop(hop.left() - 1));
                } else {
                    judge.tell(new Judge.Done(0));
                }
            } else if (message instanceof Here here) {
                next = here.actor();
                members.add(next);
                if (members.size() < PARTNERS) {
                    wantNext();
                } else {
                    ready.tell(new Judge.Done(0));
                }
            } else if (message instanceof Seen seen) {
                hops.tell(new Judge.Done(seen.messages()));
            } else if (message instanceof AskSeen) {
                members.forEach(member -> member.tell(new AskSeen(self)));
            }
            return this;
        }
    }

    /** One in another. */
    static final class Hopper extends Stateful<Wire> {
        private final ActorRef<Wire> next;
        private long hops;

        Hopper(ActorRef<Wire> next) {
            this.next = next;
        }

        @Override
        Behavior<Wire> receive(Wire message) {
            if (message instanceof Hop hop) {
                hops++;
                next.tell(new Hop(hop.left() - 1));
            } else if (message instanceof AskSeen ask) {
                ask.to().tell(new Seen(hops));
            }
            return this;
        }
    }

    static Play rings(ActorContext<?> context, Size size, Finish finish, int rings) {
        int rounds = size.pick(20, 1_000);
        List<ActorRef<Wire>> hosts = new ArrayList<>();
        for (int partner = 0; partner < PARTNERS; partner++) {
            hosts.add(Partner.guardian(context, partner));
        }
        var built = new Finish();
        var counted = new Finish();
        var ready = context.spawnAnonymous(new Judge(built, rings));
        var judge = context.spawnAnonymous(new Judge(finish, rings));
        var hops = context.spawnAnonymous(new Judge(counted, (long) rings * PARTNERS));
        List<ActorRef<Wire>> heads = new ArrayList<>();
        for (int ring = 0; ring < rings; ring++) {
            heads.add(context.spawnAnonymous(
                    Behaviors.setup(own -> new Head(own.getSelf(), hosts, ready, judge, hops))));
        }
        long hopsPerRing = (PARTNERS + 1L) * rounds;
        var after = new After(
                (long) rings * PARTNERS * rounds,
                counted,
                () -> heads.forEach(head -> head.tell(new AskSeen(head))));
        return new Play(rings * hopsPerRing, 0, built.state, () -> heads.forEach(head -> head.tell(new Hop(hopsPerRing))), after);
    }
}
