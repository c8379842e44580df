package playhouse.peers;

import com.typesafe.config.Config;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.ActorRefResolver;
import org.apache.pekko.actor.typed.ActorSystem;
import org.apache.pekko.actor.typed.javadsl.ActorContext;

/** Another process: it prints the reference of its guardian, and ends with its input. */
final class Partner {
    /** While they are reachable, so are their inputs. */
    private static final List<Process> PROCESSES = new ArrayList<>();

    private static final List<String> GUARDIANS = new ArrayList<>();

    private Partner() {}

    static void host(Config config) {
        ActorSystem<Remote.Wire> system = ActorSystem.create(Remote.host(), "partner", config);
        System.out.println(ActorRefResolver.get(system).toSerializationFormat(system));
    }

    /** Starts so many; they end with this one. */
    static void start(String workers, int count) throws IOException {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        String classes = System.getProperty("java.class.path");
        var builder = new ProcessBuilder(java, "-XX:+UseParallelGC", "-cp", classes, Main.class.getName(), "partner", workers);
        builder.redirectError(ProcessBuilder.Redirect.INHERIT);
        for (int i = 0; i < count; i++) {
            Process process = builder.start();
            PROCESSES.add(process);
            process.onExit().thenRun(() -> Main.fail("another process has ended"));
        }
        for (Process process : PROCESSES) {
            GUARDIANS.add(process.inputReader(StandardCharsets.UTF_8).readLine());
        }
    }

    /** The guardian of one of them. */
    static ActorRef<Remote.Wire> guardian(ActorContext<?> context, int partner) {
        return ActorRefResolver.get(context.getSystem()).resolveActorRef(GUARDIANS.get(partner));
    }
}
