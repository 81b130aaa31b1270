package bench;

import java.time.Duration;
import java.util.Arrays;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;

/** The workloads as a user of Kafka Streams writes them. */
final class Workloads {
    private static final Duration MINUTE = Duration.ofMinutes(1);
    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<Values.Order> ORDER = Values.json(Values.Order.class);

    static Topology topology(final String code, final String input, final String output, final String partner) {
        final StreamsBuilder builder = new StreamsBuilder();
        switch (code) {
            case "W0" -> builder.stream(input, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
                .to(output, Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
            case "W5" -> builder.stream(input, Consumed.with(Serdes.ByteArray(), TEXT))
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.with(TEXT, TEXT))
                .count()
                .toStream().mapValues(String::valueOf).to(output, Produced.with(TEXT, TEXT));
            default -> ofOrders(builder, builder.stream(input, Consumed.with(TEXT, ORDER)), code, output, partner);
        }
        return builder.build();
    }

    private static void ofOrders(
        final StreamsBuilder builder, final KStream<String, Values.Order> orders, final String code, final String output, final String partner) {
        final Grouped<String, Values.Order> grouped = Grouped.with(TEXT, ORDER);
        final Produced<String, Values.WindowCount> windows = Produced.with(TEXT, Values.json(Values.WindowCount.class));
        final Produced<String, Values.Enriched> enriched = Produced.with(TEXT, Values.json(Values.Enriched.class));
        switch (code) {
            case "W1" -> orders
                .filter((key, order) -> order.amount() >= 30)
                .mapValues(o -> new Values.Priced(o.id(), o.customer(), (long) (o.amount() * 100 + 0.5), o.amount() > 100, o.ts()))
                .to(output, Produced.with(TEXT, Values.json(Values.Priced.class)));
            case "W2", "W3", "W7" -> orders.groupByKey(grouped).count()
                .toStream().mapValues(String::valueOf).to(output, Produced.with(TEXT, TEXT));
            case "W4", "W4c" -> orders.groupByKey(grouped)
                .windowedBy(TimeWindows.ofSizeAndGrace(MINUTE, MINUTE)).count()
                .toStream().map(Workloads::inWindow).to(output, windows);
            case "Ws" -> orders.groupByKey(grouped)
                .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(5), Duration.ofDays(1))).count()
                .toStream().map(Workloads::inWindow).to(output, windows);
            case "W6" -> orders
                .join(builder.table(partner, Consumed.with(TEXT, Values.json(Values.Customer.class))),
                    (o, c) -> new Values.Enriched(o.id(), o.customer(), o.amount(), c.name(), c.tier()),
                    Joined.with(TEXT, ORDER, Values.json(Values.Customer.class)))
                .to(output, enriched);
            case "Wj" -> orders
                .join(builder.stream(partner, Consumed.with(TEXT, ORDER)),
                    (o, p) -> new Values.Enriched(o.id(), o.customer(), o.amount(), p.item(), ""),
                    JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(1), MINUTE),
                    StreamJoined.with(TEXT, ORDER, ORDER))
                .to(output, enriched);
            default -> throw new IllegalArgumentException("there is no workload " + code);
        }
    }

    private static KeyValue<String, Values.WindowCount> inWindow(final Windowed<String> key, final Long count) {
        return KeyValue.pair(key.key(), new Values.WindowCount(key.window().start(), count == null ? 0 : count, key.window().end()));
    }

    private Workloads() { }
}
