package playhouse.peers;

import java.io.NotSerializableException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.pekko.actor.ExtendedActorSystem;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.ActorRefResolver;
import org.apache.pekko.actor.typed.javadsl.Adapter;
import org.apache.pekko.serialization.ByteBufferSerializer;
import org.apache.pekko.serialization.SerializerWithStringManifest;
import playhouse.peers.Remote.AskSeen;
import playhouse.peers.Remote.Create;
import playhouse.peers.Remote.Created;
import playhouse.peers.Remote.Here;
import playhouse.peers.Remote.Hop;
import playhouse.peers.Remote.Item;
import playhouse.peers.Remote.Ping;
import playhouse.peers.Remote.Pong;
import playhouse.peers.Remote.Seen;
import playhouse.peers.Remote.Took;
import playhouse.peers.Remote.WantHopper;
import playhouse.peers.Remote.WantPonger;
import playhouse.peers.Remote.WantSink;
import playhouse.peers.Remote.Wire;

/** Writes messages into the buffers of the transport: numbers, and behind them the actor that a message may name. */
public final class WireSerializer extends SerializerWithStringManifest implements ByteBufferSerializer {
    private static final int MOST_BYTES = 1_024;

    private final ActorRefResolver resolver;

    /** Called by Pekko. */
    public WireSerializer(ExtendedActorSystem system) {
        resolver = ActorRefResolver.get(Adapter.toTyped(system));
    }

    @Override
    public int identifier() {
        return 20_260;
    }

    @Override
    public String manifest(Object message) {
        return ((Wire) message).manifest();
    }

    @Override
    public void toBinary(Object message, ByteBuffer to) {
        if (message instanceof Ping ping) {
            to.putLong(ping.left());
            put(to, ping.from());
        } else if (message instanceof Pong pong) {
            to.putLong(pong.left());
        } else if (message instanceof Item item) {
            to.putLong(item.number());
        } else if (message instanceof Took took) {
            to.putLong(took.sum()).putLong(took.count());
        } else if (message instanceof Create create) {
            put(to, create.master());
        } else if (message instanceof AskSeen ask) {
            put(to, ask.to());
        } else if (message instanceof Seen seen) {
            to.putLong(seen.messages());
        } else if (message instanceof WantPonger want) {
            put(to, want.to());
        } else if (message instanceof WantSink want) {
            put(to, want.source());
        } else if (message instanceof Here here) {
            put(to, here.actor());
        } else if (message instanceof WantHopper want) {
            put(to, want.next());
            put(to, want.to());
        } else if (message instanceof Hop hop) {
            to.putLong(hop.left());
        }
    }

    @Override
    public Object fromBinary(ByteBuffer from, String manifest) throws NotSerializableException {
        return switch (manifest) {
            case Ping.MANIFEST -> new Ping(from.getLong(), actor(from));
            case Pong.MANIFEST -> new Pong(from.getLong());
            case Item.MANIFEST -> new Item(from.getLong());
            case Took.MANIFEST -> new Took(from.getLong(), from.getLong());
            case Create.MANIFEST -> new Create(actor(from));
            case Created.MANIFEST -> new Created();
            case AskSeen.MANIFEST -> new AskSeen(actor(from));
            case Seen.MANIFEST -> new Seen(from.getLong());
            case WantPonger.MANIFEST -> new WantPonger(actor(from));
            case WantSink.MANIFEST -> new WantSink(actor(from));
            case Here.MANIFEST -> new Here(actor(from));
            case WantHopper.MANIFEST -> new WantHopper(actor(from), actor(from));
            case Hop.MANIFEST -> new Hop(from.getLong());
            default -> throw new NotSerializableException(manifest);
        };
    }

    @Override
    public byte[] toBinary(Object message) {
        ByteBuffer buffer = ByteBuffer.allocate(MOST_BYTES);
        toBinary(message, buffer);
        return Arrays.copyOf(buffer.array(), buffer.position());
    }

    @Override
    public Object fromBinary(byte[] bytes, String manifest) throws NotSerializableException {
        return fromBinary(ByteBuffer.wrap(bytes), manifest);
    }

    private void put(ByteBuffer to, ActorRef<Wire> actor) {
        byte[] name = resolver.toSerializationFormat(actor).getBytes(StandardCharsets.US_ASCII);
        to.putShort((short) name.length).put(name);
    }

    private ActorRef<Wire> actor(ByteBuffer from) {
        byte[] name = new byte[from.getShort()];
        from.get(name);
        return resolver.resolveActorRef(new String(name, StandardCharsets.US_ASCII));
    }
}
