package playhouse.peers;

import org.apache.pekko.actor.typed.Behavior;

/** Waits until so many are done, and adds up their numbers. */
final class Judge extends Stateful<Judge.Done> {
    /** Somebody is done. */
    record Done(long number) {}

    private final Finish finish;
    private long missing;
    private long sum;

    Judge(Finish finish, long missing) {
        this.finish = finish;
        this.missing = missing;
    }

    @Override
    public Behavior<Done> receive(Done done) {
        sum += done.number;
        missing--;
        if (missing == 0) {
            finish.reached(sum);
        }
        return this;
    }
}
