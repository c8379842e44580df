package playhouse.peers;

import java.util.ArrayList;
import java.util.List;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.ActorContext;
import playhouse.peers.Main.Play;
import playhouse.peers.Main.Size;

/** Tokens that go round. */
final class Rings {
    private sealed interface Message {}

    private record Token(long left) implements Message {}

    private record Close(ActorRef<Message> first) implements Message {}

    private Rings() {}

    static Play threadring(ActorContext<?> context, Size size, Finish finish) {
        return rings(context, finish, 1, 503, size.pick(5_000, 5_000_000));
    }

    static Play ringmulti(ActorContext<?> context, Size size, Finish finish) {
        return rings(context, finish, size.pick(10, 100), size.pick(20, 100), size.pick(500, 100_000));
    }

    private static final class Member extends Stateful<Message> {
        private final ActorRef<Judge.Done> judge;
        private final int position;
        private ActorRef<Message> next;

        Member(ActorRef<Judge.Done> judge, ActorRef<Message> next, int position) {
            this.judge = judge;
            this.next = next;
            this.position = position;
        }

        @Override
        Behavior<Message> receive(Message message) {
            if (message instanceof Token token) {
                if (token.left > 0) {
                    next.tell(new Token(token.left - 1));
                } else {
                    judge.tell(new Judge.Done(position));
                }
            } else if (message instanceof Close close) {
                next = close.first;
            }
            return this;
        }
    }

    private static Play rings(ActorContext<?> context, Finish finish, int rings, int members, long hops) {
        var judge = context.spawnAnonymous(new Judge(finish, rings));
        List<ActorRef<Message>> firsts = new ArrayList<>();
        for (int ring = 0; ring < rings; ring++) {
            ActorRef<Message> last = context.spawnAnonymous(new Member(judge, null, members - 1));
            ActorRef<Message> first = last;
            for (int position = members - 2; position >= 0; position--) {
                first = context.spawnAnonymous(new Member(judge, first, position));
            }
            last.tell(new Close(first));
            firsts.add(first);
        }
        return new Play(rings * hops, rings * (hops % members), () -> firsts.forEach(first -> first.tell(new Token(hops))));
    }
}
