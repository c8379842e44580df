package playhouse.peers;

import java.util.concurrent.CompletableFuture;

/** Held by the actor that reaches the final state: it takes the time at once. */
final class Finish {
    record State(long at, long result) {}

    final CompletableFuture<State> state = new CompletableFuture<>();

    void reached(long result) {
        state.complete(new State(System.nanoTime(), result));
    }
}
