package playhouse.peers;

import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.ExtensibleBehavior;
import org.apache.pekko.actor.typed.Signal;
import org.apache.pekko.actor.typed.TypedActorContext;

/** A behaviour with a state of its own, whose messages are told apart by a switch: less is done per message than in a builder's. */
abstract class Stateful<M> extends ExtensibleBehavior<M> {
    /** Handles a message. */
    abstract Behavior<M> receive(M message);

    @Override
    public final Behavior<M> receive(TypedActorContext<M> context, M message) {
        return receive(message);
    }

    @Override
    public final Behavior<M> receiveSignal(TypedActorContext<M> context, Signal signal) {
        return this;
    }
}
