package interop;

import java.time.Duration;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.TimestampExtractor;

/** The topologies of tests/interop/topologies.py once more: same operators and names, so same tasks, topics and changelogs. */
final class Topologies {
    private static final Serde<String> STRING = Serdes.String();
    private static final Serde<Long> LONG = Serdes.Long();
    private static final Duration SIZE = Duration.ofSeconds(10);
    private static final Duration GAP = Duration.ofSeconds(5);
    private static final Duration GRACE = Duration.ofSeconds(5);
    private static final Serde<Windowed<String>> WINDOWED = new WindowedSerdes.TimeWindowedSerde<>(STRING, SIZE.toMillis());
    private static final Serde<Windowed<String>> SESSION = new WindowedSerdes.SessionWindowedSerde<>(STRING);

    private Topologies() { }

    static Topology named(String name, String topics) {
        StreamsBuilder builder = new StreamsBuilder();
        switch (name) {
            case "windows" -> windows(builder, topics);
            case "sessions" -> sessions(builder, topics);
            case "join" -> join(builder, topics);
            case "final" -> closedWindows(builder, topics);
            case "generated" -> generated(builder, topics);
            case "foreign" -> foreign(builder, topics);
            default -> throw new IllegalArgumentException(name);
        }
        return builder.build();
    }

    private static void windows(StreamsBuilder builder, String topics) {
        builder.stream(topics + "-in", Consumed.with(STRING, STRING).withTimestampExtractor(new PartitionTimeIfAsked()))
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, GRACE))
            .count(Named.as("count-windows"), Materialized.as("windows"))
            .toStream(Named.as("window-counts"))
            .to(topics + "-out", Produced.with(WINDOWED, LONG));
    }

    private static void sessions(StreamsBuilder builder, String topics) {
        builder.<String, String>stream(topics + "-in")
            .groupBy((device, value) -> userOf(device), Grouped.as("by-user"))
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(GAP, GRACE))
            .count(Named.as("count-sessions"), Materialized.as("sessions"))
            .toStream(Named.as("session-counts"))
            .to(topics + "-out", Produced.with(SESSION, LONG));
    }

    private static void join(StreamsBuilder builder, String topics) {
        KTable<String, String> left = builder.table(topics + "-left", Materialized.as("left"));
        KTable<String, String> right = builder.table(topics + "-right", Materialized.as("right"));
        left.outerJoin(right, Topologies::joined, Named.as("both"), Materialized.as("joined"))
            .toStream(Named.as("joined-rows"))
            .to(topics + "-out");
    }

    private static void closedWindows(StreamsBuilder builder, String topics) {
        builder.<String, String>stream(topics + "-in")
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, GRACE))
            .emitStrategy(EmitStrategy.onWindowClose())
            .count(Named.as("count-closed"), Materialized.as("closed"))
            .toStream(Named.as("closed-counts"))
            .to(topics + "-out", Produced.with(WINDOWED, LONG));
    }

    /** Nothing has a name: topics, stores and nodes are named by their numbers. */
    private static void generated(StreamsBuilder builder, String topics) {
        builder.<String, String>stream(topics + "-in")
            .groupBy((device, value) -> userOf(device))
            .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, GRACE))
            .count()
            .toStream()
            .to(topics + "-counts", Produced.with(WINDOWED, LONG));
        KTable<String, String> left = builder.table(topics + "-left");
        KTable<String, String> right = builder.table(topics + "-right");
        left.outerJoin(right, Topologies::joined).toStream().to(topics + "-out");
    }

    private static void foreign(StreamsBuilder builder, String topics) {
        KTable<String, String> orders = builder.table(topics + "-orders", Materialized.as("orders"));
        KTable<String, String> users = builder.table(topics + "-users", Materialized.as("users"));
        orders.join(users, Topologies::namedUser, Topologies::joined, TableJoined.as("by-user"), Materialized.as("joined"))
            .toStream(Named.as("joined-rows"))
            .to(topics + "-out");
        orders.leftJoin(users, Topologies::namedUser, Topologies::joined, TableJoined.as("by-any-user"),
                Materialized.as("all-joined"))
            .toStream(Named.as("all-joined-rows"))
            .to(topics + "-all");
    }

    private static String namedUser(String order) {
        return "nobody".equals(order) ? null : order;
    }

    private static String userOf(String device) {
        return device.substring(0, device.indexOf('/'));
    }

    private static String joined(String left, String right) {
        return (left == null ? "-" : left) + "+" + (right == null ? "-" : right);
    }

    /** A value that asks for it gets the time of its partition: what committed metadata says after a takeover. */
    private static final class PartitionTimeIfAsked implements TimestampExtractor {
        @Override
        public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
            return "now".equals(record.value()) ? partitionTime : record.timestamp();
        }
    }
}
