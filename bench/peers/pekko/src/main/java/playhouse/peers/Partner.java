package playhouse.peers;

import com.typesafe.config.Config;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.ActorRefResolver;
import org.apache.pekko.actor.typed.ActorSystem;
import org.apache.pekko.actor.typed.javadsl.ActorContext;

/** The other process: it says who is its guardian there, and ends with its input. */
final class Partner {
    /** While it is reachable, so is its input. */
    private static Process process;

    private static String guardian;

    private Partner() {}

    static void host(Config config) {
        ActorSystem<Remote.Wire> system = ActorSystem.create(Remote.host(), "partner", config);
        System.out.println(ActorRefResolver.get(system).toSerializationFormat(system));
    }

    /** Starts it; it ends with this one. */
    static void start(String workers) throws IOException {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        String classes = System.getProperty("java.class.path");
        var builder = new ProcessBuilder(java, "-XX:+UseParallelGC", "-cp", classes, Main.class.getName(), "partner", workers);
        process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
        process.onExit().thenRun(() -> Main.fail("the other process has ended"));
        BufferedReader out = process.inputReader(StandardCharsets.UTF_8);
        guardian = out.readLine();
    }

    /** Its guardian. */
    static ActorRef<Remote.Wire> guardian(ActorContext<?> context) {
        return ActorRefResolver.get(context.getSystem()).resolveActorRef(guardian);
    }
}
