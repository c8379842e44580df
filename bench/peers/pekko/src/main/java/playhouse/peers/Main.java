package playhouse.peers;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.pekko.Version;
import org.apache.pekko.actor.typed.ActorSystem;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.ActorContext;
import org.apache.pekko.actor.typed.javadsl.Behaviors;

/**
 * The workloads on Apache Pekko's typed actors.
 *
 * <p>A workload is played repeatedly, each time in a new system: first for the compiler's warm-up, then five times for the median.
 * Long plays are fewer.
 */
public final class Main {
    /** Warm-up runs: at most this many, at least one, and none after ten seconds. */
    private static final int WARM_UP_RUNS = 5;

    private static final long WARM_UP_NS = 10_000_000_000L;

    /** Runs that count: so many, or fewer, but one, once all have taken thirty seconds. */
    private static final int RUNS = 5;

    private static final long ALL_RUNS_NS = 30_000_000_000L;

    /** A workload: creates its actors, and says how it is started. */
    interface Workload {
        Play create(ActorContext<?> context, Size size, Finish finish);
    }

    /**
     * A workload of existing actors.
     *
     * @param ready when it may be started
     * @param after null where nothing is left to look at
     */
    record Play(long ops, long expected, CompletionStage<?> ready, Runnable start, After after) {
        Play(long ops, long expected, Runnable start, After after) {
            this(ops, expected, CompletableFuture.completedStage(null), start, after);
        }

        Play(long ops, long expected, Runnable start) {
            this(ops, expected, start, null);
        }
    }

    /** Looked at after the final state. */
    record After(long expected, Finish finish, Runnable start) {}

    /** One run. */
    private record Played(long ops, long ns) {}

    /** How much is done. */
    record Size(boolean smoke) {
        int pick(int small, int full) {
            return smoke ? small : full;
        }
    }

    private static final Map<String, Workload> WORKLOADS = Map.ofEntries(
            Map.entry("count", Messages::count),
            Map.entry("pingpong", Messages::pingpong),
            Map.entry("threadring", Rings::threadring),
            Map.entry("ringmulti", Rings::ringmulti),
            Map.entry("fjcreate", Creation::fjcreate),
            Map.entry("skynet", Creation::skynet),
            Map.entry("chameneos", Meetings::chameneos),
            Map.entry("big", Meetings::big),
            Map.entry("fib", Creation::fib),
            Map.entry("executor", Messages::executor),
            Map.entry("repeat", Messages::repeat));

    private static final Map<String, Workload> REMOTE_WORKLOADS = Map.of(
            "rpingpong", Remote::pingpong,
            "rthroughput", Remote::throughput,
            "rcreate", Remote::create,
            "rrings-1", (context, size, finish) -> RemoteRings.rings(context, size, finish, 1),
            "rrings-32", (context, size, finish) -> RemoteRings.rings(context, size, finish, size.pick(4, 32)),
            "rrings-320", (context, size, finish) -> RemoteRings.rings(context, size, finish, size.pick(4, 320)));

    private Main() {}

    public static void main(String[] words) throws Exception {
        var listener = new Thread(Main::listen);
        listener.setDaemon(true);
        listener.start();
        if (words.length == 2 && words[0].equals("partner")) {
            Partner.host(remote(settings(words[1])));
            listener.join();
        }
        if (words.length != 5
                || !words[1].equals("--size")
                || !(words[2].equals("smoke") || words[2].equals("default"))
                || !words[3].equals("--workers")) {
            fail("usage: pekko WORKLOAD --size smoke|default --workers N");
        }
        boolean remote = REMOTE_WORKLOADS.containsKey(words[0]);
        Workload workload = remote ? REMOTE_WORKLOADS.get(words[0]) : WORKLOADS.get(words[0]);
        if (workload == null) {
            fail("there is no workload `" + words[0] + "`");
        }
        Config config = settings(words[4]);
        if (remote) {
            config = remote(config);
            Partner.start(words[4], words[0].startsWith("rrings") ? RemoteRings.PARTNERS : 1);
        }
        Size size = new Size(words[2].equals("smoke"));
        long began = System.nanoTime();
        for (int run = 0; run < WARM_UP_RUNS && (run < 1 || System.nanoTime() - began < WARM_UP_NS); run++) {
            play(workload, size, config);
        }
        List<Played> runs = new ArrayList<>();
        while (runs.isEmpty() || runs.size() < RUNS && System.nanoTime() - began < ALL_RUNS_NS) {
            runs.add(play(workload, size, config));
        }
        runs.sort(Comparator.comparingLong(Played::ns));
        Played median = runs.get((runs.size() - 1) / 2);
        System.out.printf(
                "{\"peer\":\"pekko\",\"version\":\"%s\",\"workload\":\"%s\",\"ops\":%d,\"ns\":%d}%n",
                Version.current(), words[0], median.ops, median.ns);
        System.out.flush();
        // Its memory is looked at until its input ends.
        listener.join();
    }

    /** Ends the process with its standard input, whatever the others are at. */
    private static void listen() {
        try {
            System.in.transferTo(OutputStream.nullOutputStream());
        } catch (IOException error) {
            // As good as its end.
        }
        Runtime.getRuntime().halt(0);
    }

    /** As many threads as workers. An actor may handle 100 messages before the next one, because no workload needs a fair latency. */
    private static Config settings(String workers) {
        String settings = """
                pekko.log-dead-letters = off
                pekko.actor.default-dispatcher {
                  fork-join-executor { parallelism-min = %1$s, parallelism-max = %1$s }
                  throughput = 100
                }
                """.formatted(workers);
        return ConfigFactory.parseString(settings).withFallback(ConfigFactory.load());
    }

    /**
     * With Artery over TCP, on a port of the system's choice. What its queue does not hold is lost, so it holds all that is under way.
     * It runs on the threads of the actors: on others, a message wakes one after the other.
     */
    private static Config remote(Config config) {
        String settings = """
                pekko.actor {
                  provider = remote
                  internal-dispatcher = pekko.actor.default-dispatcher
                  serializers.wire = "playhouse.peers.WireSerializer"
                  serialization-bindings { "playhouse.peers.Remote$Wire" = wire }
                }
                pekko.remote.artery {
                  transport = tcp
                  canonical { hostname = "127.0.0.1", port = 0 }
                  advanced.outbound-message-queue-size = 16384
                  advanced.use-dispatcher = pekko.actor.default-dispatcher
                }
                """;
        return ConfigFactory.parseString(settings).withFallback(config);
    }

    private static Played play(Workload workload, Size size, Config config) throws Exception {
        var finish = new Finish();
        var created = new CompletableFuture<Play>();
        Behavior<Void> guardian = Behaviors.setup(context -> {
            created.complete(workload.create(context, size, finish));
            return Behaviors.empty();
        });
        ActorSystem<Void> system = ActorSystem.create(guardian, "peer", config);
        Play play = created.get();
        play.ready().toCompletableFuture().get();
        long started = System.nanoTime();
        play.start().run();
        Finish.State ended = finish.state.get();
        check(play.expected(), ended.result());
        if (play.after() != null) {
            play.after().start().run();
            check(play.after().expected(), play.after().finish().state.get().result());
        }
        system.terminate();
        system.getWhenTerminated().toCompletableFuture().get();
        // What this run has left is not for the next one to collect.
        System.gc();
        return new Played(play.ops(), ended.at() - started);
    }

    private static void check(long expected, long found) {
        if (expected != found) {
            fail("wrong: the result should be " + expected + " and is " + found);
        }
    }

    static void fail(String text) {
        System.err.println(text);
        Runtime.getRuntime().halt(1);
    }
}
