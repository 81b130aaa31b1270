package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.kstream.ValueTransformerWithKeySupplier;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.Punctuator;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;

/** Suppliers of the named processors and transformers of the scenario format. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Processors {
    private Processors() { }

    static ProcessorSupplier<Object, Object, Object, Object> processor(JsonNode spec) {
        return new ProcessorSupplier<>() {
            @Override
            public Processor<Object, Object, Object, Object> get() {
                return new Named(spec);
            }

            @Override
            public Set<StoreBuilder<?>> stores() {
                return provided(spec);
            }
        };
    }

    static FixedKeyProcessorSupplier<Object, Object, Object> fixedKey(JsonNode spec) {
        return new FixedKeyProcessorSupplier<>() {
            @Override
            public FixedKeyProcessor<Object, Object, Object> get() {
                return new NamedFixedKey(spec);
            }

            @Override
            public Set<StoreBuilder<?>> stores() {
                return provided(spec);
            }
        };
    }

    static ValueTransformerWithKeySupplier<Object, Object, Object> transformer(JsonNode spec) {
        return new ValueTransformerWithKeySupplier<>() {
            @Override
            public ValueTransformerWithKey<Object, Object, Object> get() {
                return new Transformer(spec);
            }

            @Override
            public Set<StoreBuilder<?>> stores() {
                return provided(spec);
            }
        };
    }

    private static Set<StoreBuilder<?>> provided(JsonNode spec) {
        if (!spec.has("provides")) {
            return null;
        }
        Set<StoreBuilder<?>> stores = new HashSet<>();
        spec.get("provides").forEach(store -> stores.add(Specs.store(store)));
        return stores;
    }

    private static Object stored(Object found) {
        return found instanceof ValueAndTimestamp<?> v ? v.value() : found;
    }

    private static Long count(KeyValueStore store, Object key) {
        if (key == null) {
            return null;
        }
        Long before = (Long) stored(store.get(key));
        long count = (before == null ? 0 : before) + 1;
        store.put(key, count);
        return count;
    }

    private static void put(KeyValueStore store, Object key, Object value, long timestamp) {
        store.put(key, store instanceof TimestampedKeyValueStore ? ValueAndTimestamp.make(value, timestamp) : value);
    }

    private static IllegalStateException boom(Object value) {
        return new IllegalStateException("boom " + Expressions.text(value));
    }

    private static final class Named implements Processor<Object, Object, Object, Object> {
        private final JsonNode spec;
        private final String name;
        private ProcessorContext<Object, Object> context;
        private Cancellable schedule;
        private long records;
        private int calls;

        Named(JsonNode spec) {
            this.spec = spec;
            this.name = spec.get("name").asText();
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            this.context = context;
            if (name.equals("buffer")) {
                schedule = schedule(this::flush);
            } else if (name.equals("punctuate")) {
                schedule = schedule(this::punctuate);
            }
        }

        private Cancellable schedule(Punctuator punctuator) {
            PunctuationType type = spec.get("type").asText().equals("stream_time")
                ? PunctuationType.STREAM_TIME : PunctuationType.WALL_CLOCK_TIME;
            Duration interval = Specs.ms(spec, "interval");
            return spec.has("start")
                ? context.schedule(Instant.ofEpochMilli(spec.get("start").asLong()), interval, type, punctuator)
                : context.schedule(interval, type, punctuator);
        }

        private KeyValueStore store() {
            return context.getStateStore(spec.get("store").asText());
        }

        @Override
        public void process(Record<Object, Object> record) {
            switch (name) {
                case "apply" -> apply(record);
                case "route" -> route(record);
                case "count" -> context.forward(record.withValue(count(store(), record.key())));
                case "dedup" -> dedup(record);
                case "put", "buffer" -> put(store(), record.key(), record.value(), record.timestamp());
                case "lookup" -> context.forward(record.withValue(Expressions.text(record.value()) + "/" + Expressions.text(
                    record.key() == null ? null : stored(store().get(record.key())))));
                case "punctuate" -> {
                    records++;
                    context.forward(record);
                }
                case "header" -> context.forward(record.withHeaders(new RecordHeaders(record.headers().toArray())
                    .add(spec.get("key").asText(), spec.get("value").asText().getBytes(StandardCharsets.UTF_8))));
                case "with_timestamp" -> context.forward(record.withTimestamp(record.timestamp() + spec.get("plus").asLong()));
                case "commit" -> {
                    context.commit();
                    context.forward(record);
                }
                case "fail_on" -> failOn(record);
                case "store_script" -> context.forward(record.withValue(StoreScript.run(
                    context.getStateStore(spec.get("store").asText()), (String) record.value(), record.timestamp())));
                default -> throw new MalformedScenario("unknown processor " + name);
            }
        }

        private void apply(Record<Object, Object> record) {
            Map<String, Object> variables = Functions.variables("k", record.key(), "v", record.value(), "ts", record.timestamp(),
                "stream_time", context.currentStreamTimeMs(), "wall_clock", context.currentSystemTimeMs(),
                "topic", context.recordMetadata().map(origin -> origin.topic()).orElse(null),
                "partition", context.recordMetadata().map(origin -> (long) origin.partition()).orElse(null),
                "offset", context.recordMetadata().map(origin -> origin.offset()).orElse(null));
            for (Object pair : (Iterable<?>) Expressions.evaluate(spec.get("fn"), variables)) {
                KeyValue<?, ?> found = (KeyValue<?, ?>) pair;
                context.forward(record.withKey((Object) found.key).withValue((Object) found.value));
            }
        }

        private void route(Record<Object, Object> record) {
            String[] parts = ((String) record.value()).split(":", 2);
            Record<Object, Object> routed = record.withValue(parts.length > 1 ? parts[1] : "");
            if (parts[0].equals("*")) {
                context.forward(routed);
            } else {
                context.forward(routed, parts[0]);
            }
        }

        private void dedup(Record<Object, Object> record) {
            if (store().get(record.key()) == null) {
                put(store(), record.key(), record.value(), record.timestamp());
                context.forward(record);
            }
        }

        private void failOn(Record<Object, Object> record) {
            if (spec.get("value").asText().equals(record.value())) {
                throw boom(record.value());
            }
            context.forward(record);
        }

        private void flush(long timestamp) {
            try (KeyValueIterator<Object, Object> entries = store().all()) {
                while (entries.hasNext()) {
                    KeyValue<Object, Object> entry = entries.next();
                    context.forward(new Record<>(entry.key, stored(entry.value), timestamp));
                    store().delete(entry.key);
                }
            }
        }

        private void punctuate(long timestamp) {
            context.forward(new Record<>("punct", spec.get("type").asText() + " " + timestamp + " " + records, timestamp));
            records = 0;
            calls++;
            if (spec.has("limit") && calls == spec.get("limit").asInt()) {
                schedule.cancel();
            }
        }
    }

    private static final class NamedFixedKey implements FixedKeyProcessor<Object, Object, Object> {
        private final JsonNode spec;
        private FixedKeyProcessorContext<Object, Object> context;

        NamedFixedKey(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(FixedKeyProcessorContext<Object, Object> context) {
            this.context = context;
        }

        @Override
        public void process(FixedKeyRecord<Object, Object> record) {
            switch (spec.get("name").asText()) {
                case "apply" -> {
                    Map<String, Object> variables =
                        Functions.variables("k", record.key(), "v", record.value(), "ts", record.timestamp());
                    for (Object value : (Iterable<?>) Expressions.evaluate(spec.get("fn"), variables)) {
                        context.forward(record.withValue(value));
                    }
                }
                case "count" -> context.forward(
                    record.withValue(count(context.getStateStore(spec.get("store").asText()), record.key())));
                case "fail_on" -> {
                    if (spec.get("value").asText().equals(record.value())) {
                        throw boom(record.value());
                    }
                    context.forward(record);
                }
                default -> throw new MalformedScenario("no processor of values: " + spec);
            }
        }
    }

    private static final class Transformer implements ValueTransformerWithKey<Object, Object, Object> {
        private final JsonNode spec;
        private org.apache.kafka.streams.processor.ProcessorContext context;

        Transformer(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(org.apache.kafka.streams.processor.ProcessorContext context) {
            this.context = context;
        }

        @Override
        public Object transform(Object key, Object value) {
            if (spec.get("name").asText().equals("apply")) {
                return Expressions.evaluate(spec.get("fn"), Functions.variables("k", key, "v", value));
            }
            Long count = count((KeyValueStore) context.getStateStore(spec.get("store").asText()), key);
            return Expressions.text(value) + "#" + Expressions.text(count);
        }

        @Override
        public void close() { }
    }
}
