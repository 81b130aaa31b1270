package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.AutoOffsetReset;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/** The parameter objects of the scenario format as those of Kafka Streams; only what a file gives is set. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Specs {
    private Specs() { }

    static Duration ms(JsonNode spec, String field) {
        return Duration.ofMillis(spec.get(field).asLong());
    }

    static Serde<Object> serde(JsonNode spec, String field) {
        return spec.has(field) ? Codecs.serde(spec.get(field)) : null;
    }

    private static String text(JsonNode spec, String field) {
        return spec.has(field) ? spec.get(field).asText() : null;
    }

    static Consumed<Object, Object> consumed(JsonNode spec) {
        Consumed<Object, Object> consumed = Consumed.with(serde(spec, "key"), serde(spec, "value"));
        if (spec.has("name")) {
            consumed = consumed.withName(text(spec, "name"));
        }
        if (spec.has("extractor")) {
            consumed = consumed.withTimestampExtractor(Extractors.make(text(spec, "extractor")));
        }
        return spec.has("reset") ? consumed.withOffsetResetPolicy(reset(spec.get("reset"))) : consumed;
    }

    static AutoOffsetReset reset(JsonNode spec) {
        if (spec.isIntegralNumber()) {
            return AutoOffsetReset.byDuration(Duration.ofMillis(spec.asLong()));
        }
        return switch (spec.asText()) {
            case "earliest" -> AutoOffsetReset.earliest();
            case "latest" -> AutoOffsetReset.latest();
            case "none" -> AutoOffsetReset.none();
            default -> throw new MalformedScenario("unknown reset policy " + spec);
        };
    }

    static Produced<Object, Object> produced(JsonNode spec) {
        Produced<Object, Object> produced = Produced.with(serde(spec, "key"), serde(spec, "value"));
        if (spec.has("name")) {
            produced = produced.withName(text(spec, "name"));
        }
        return spec.has("partitions_fn") ? produced.withStreamPartitioner(partitioner(spec.get("partitions_fn"))) : produced;
    }

    private static StreamPartitioner<Object, Object> partitioner(JsonNode expression) {
        return (topic, key, value, count) -> {
            Object found = Expressions.evaluate(expression, Functions.variables("k", key, "v", value));
            if (found == null) {
                return Optional.empty();
            }
            Set<Integer> partitions = new HashSet<>();
            ((Iterable<Object>) found).forEach(partition -> partitions.add(((Number) partition).intValue()));
            return Optional.of(partitions);
        };
    }

    static Grouped<Object, Object> grouped(JsonNode spec) {
        return Grouped.with(text(spec, "name"), serde(spec, "key"), serde(spec, "value"));
    }

    static Repartitioned<Object, Object> repartitioned(JsonNode spec) {
        Repartitioned<Object, Object> repartitioned = Repartitioned.with(serde(spec, "key"), serde(spec, "value"));
        if (spec.has("name")) {
            repartitioned = repartitioned.withName(text(spec, "name"));
        }
        return spec.has("partitions") ? repartitioned.withNumberOfPartitions(spec.get("partitions").asInt()) : repartitioned;
    }

    static Joined<Object, Object, Object> joined(JsonNode spec) {
        Joined<Object, Object, Object> joined =
            Joined.with(serde(spec, "key"), serde(spec, "left"), serde(spec, "right"), text(spec, "name"));
        return spec.has("grace") ? joined.withGracePeriod(ms(spec, "grace")) : joined;
    }

    static StreamJoined<Object, Object, Object> streamJoined(JsonNode spec) {
        StreamJoined<Object, Object, Object> joined =
            StreamJoined.with(serde(spec, "key"), serde(spec, "left"), serde(spec, "right"));
        joined = spec.has("name") ? joined.withName(text(spec, "name")) : joined;
        joined = spec.has("store_name") ? joined.withStoreName(text(spec, "store_name")) : joined;
        joined = spec.has("this_store")
            ? joined.withThisStoreSupplier((WindowBytesStoreSupplier) supplier(spec.get("this_store"))) : joined;
        joined = spec.has("other_store")
            ? joined.withOtherStoreSupplier((WindowBytesStoreSupplier) supplier(spec.get("other_store"))) : joined;
        joined = spec.has("type") ? joined.withDslStoreSuppliers(suppliers(text(spec, "type"))) : joined;
        if (!spec.has("logging")) {
            return joined;
        }
        return spec.get("logging").isObject()
            ? joined.withLoggingEnabled(strings(spec.get("logging"))) : joined.withLoggingDisabled();
    }

    private static DslStoreSuppliers suppliers(String type) {
        return type.equals("in_memory")
            ? new BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers()
            : new BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers();
    }

    static Materialized materialized(JsonNode spec) {
        Materialized materialized = beginning(spec);
        if (spec.has("key")) {
            materialized = materialized.withKeySerde(serde(spec, "key"));
        }
        if (spec.has("value")) {
            materialized = materialized.withValueSerde(serde(spec, "value"));
        }
        if (spec.has("caching")) {
            materialized = spec.get("caching").asBoolean()
                ? materialized.withCachingEnabled() : materialized.withCachingDisabled();
        }
        if (spec.has("logging")) {
            materialized = spec.get("logging").isObject()
                ? materialized.withLoggingEnabled(strings(spec.get("logging"))) : materialized.withLoggingDisabled();
        }
        if (spec.has("retention")) {
            materialized = materialized.withRetention(ms(spec, "retention"));
        }
        return spec.has("type") ? materialized.withStoreType(suppliers(text(spec, "type"))) : materialized;
    }

    private static Materialized beginning(JsonNode spec) {
        if (spec.has("store")) {
            return Materialized.as(text(spec, "store"));
        }
        if (!spec.has("supplier")) {
            return Materialized.with(null, null);
        }
        Object supplier = supplier(spec.get("supplier"));
        if (supplier instanceof WindowBytesStoreSupplier window) {
            return Materialized.as(window);
        }
        return supplier instanceof SessionBytesStoreSupplier session
            ? Materialized.as(session) : Materialized.as((KeyValueBytesStoreSupplier) supplier);
    }

    static Map<String, String> strings(JsonNode spec) {
        Map<String, String> found = new HashMap<>();
        spec.properties().forEach(entry -> found.put(entry.getKey(), entry.getValue().asText()));
        return found;
    }

    // --- stores -------------------------------------------------------------------------------------------------------

    private static Object supplier(JsonNode spec) {
        String name = text(spec, "name");
        boolean inMemory = spec.path("memory").asBoolean(false);
        return switch (text(spec, "kind")) {
            case "kv" -> inMemory ? Stores.inMemoryKeyValueStore(name) : Stores.persistentKeyValueStore(name);
            case "timestamped_kv" ->
                inMemory ? Stores.inMemoryKeyValueStore(name) : Stores.persistentTimestampedKeyValueStore(name);
            case "lru" -> Stores.lruMap(name, spec.get("capacity").asInt());
            case "window", "timestamped_window" -> windowSupplier(spec, name, inMemory);
            case "session" -> inMemory
                ? Stores.inMemorySessionStore(name, ms(spec, "retention"))
                : Stores.persistentSessionStore(name, ms(spec, "retention"));
            case "versioned" -> spec.has("segment")
                ? Stores.persistentVersionedKeyValueStore(name, ms(spec, "history"), ms(spec, "segment"))
                : Stores.persistentVersionedKeyValueStore(name, ms(spec, "history"));
            default -> throw new MalformedScenario("unknown kind of store " + spec);
        };
    }

    private static WindowBytesStoreSupplier windowSupplier(JsonNode spec, String name, boolean inMemory) {
        Duration retention = ms(spec, "retention");
        Duration size = ms(spec, "size");
        boolean duplicates = spec.path("duplicates").asBoolean(false);
        if (inMemory) {
            return Stores.inMemoryWindowStore(name, retention, size, duplicates);
        }
        return text(spec, "kind").equals("window")
            ? Stores.persistentWindowStore(name, retention, size, duplicates)
            : Stores.persistentTimestampedWindowStore(name, retention, size, duplicates);
    }

    static StoreBuilder<?> store(JsonNode spec) {
        StoreBuilder<?> builder = builder(spec);
        if (spec.has("caching")) {
            builder = spec.get("caching").asBoolean() ? builder.withCachingEnabled() : builder.withCachingDisabled();
        }
        if (spec.has("logging")) {
            builder = spec.get("logging").isObject()
                ? builder.withLoggingEnabled(strings(spec.get("logging"))) : builder.withLoggingDisabled();
        }
        return builder;
    }

    private static StoreBuilder<?> builder(JsonNode spec) {
        Serde<Object> key = serde(spec, "key");
        Serde<Object> value = serde(spec, "value");
        Object supplier = supplier(spec);
        return switch (text(spec, "kind")) {
            case "kv", "lru" -> Stores.keyValueStoreBuilder((KeyValueBytesStoreSupplier) supplier, key, value);
            case "timestamped_kv" -> Stores.timestampedKeyValueStoreBuilder((KeyValueBytesStoreSupplier) supplier, key, value);
            case "window" -> Stores.windowStoreBuilder((WindowBytesStoreSupplier) supplier, key, value);
            case "timestamped_window" -> Stores.timestampedWindowStoreBuilder((WindowBytesStoreSupplier) supplier, key, value);
            case "session" -> Stores.sessionStoreBuilder((SessionBytesStoreSupplier) supplier, key, value);
            default -> Stores.versionedKeyValueStoreBuilder((VersionedBytesStoreSupplier) supplier, key, value);
        };
    }

    // --- windows ------------------------------------------------------------------------------------------------------

    static Object window(JsonNode spec) {
        boolean hasGrace = spec.has("grace");
        switch (text(spec, "kind")) {
            case "time":
                TimeWindows time = hasGrace
                    ? TimeWindows.ofSizeAndGrace(ms(spec, "size"), ms(spec, "grace")) : TimeWindows.ofSizeWithNoGrace(ms(spec, "size"));
                return spec.has("advance") ? time.advanceBy(ms(spec, "advance")) : time;
            case "sliding":
                return hasGrace
                    ? SlidingWindows.ofTimeDifferenceAndGrace(ms(spec, "diff"), ms(spec, "grace"))
                    : SlidingWindows.ofTimeDifferenceWithNoGrace(ms(spec, "diff"));
            case "session":
                return hasGrace
                    ? SessionWindows.ofInactivityGapAndGrace(ms(spec, "gap"), ms(spec, "grace"))
                    : SessionWindows.ofInactivityGapWithNoGrace(ms(spec, "gap"));
            case "unlimited":
                return spec.has("start")
                    ? UnlimitedWindows.of().startOn(java.time.Instant.ofEpochMilli(spec.get("start").asLong())) : UnlimitedWindows.of();
            case "join":
                JoinWindows join = hasGrace
                    ? JoinWindows.ofTimeDifferenceAndGrace(ms(spec, "diff"), ms(spec, "grace"))
                    : JoinWindows.ofTimeDifferenceWithNoGrace(ms(spec, "diff"));
                join = spec.has("before") ? join.before(ms(spec, "before")) : join;
                return spec.has("after") ? join.after(ms(spec, "after")) : join;
            default:
                throw new MalformedScenario("unknown kind of window " + spec);
        }
    }

    static Suppressed<?> suppressed(JsonNode spec) {
        Suppressed.BufferConfig<?> buffer = buffer(spec.path("buffer"));
        Suppressed<?> suppressed = text(spec, "until").equals("window_closes")
            ? Suppressed.untilWindowCloses((Suppressed.StrictBufferConfig) buffer)
            : Suppressed.untilTimeLimit(ms(spec, "ms"), buffer);
        return spec.has("name") ? suppressed.withName(text(spec, "name")) : suppressed;
    }

    private static Suppressed.BufferConfig<?> buffer(JsonNode spec) {
        Suppressed.BufferConfig<?> buffer = Suppressed.BufferConfig.unbounded();
        if (spec.has("max_records")) {
            buffer = Suppressed.BufferConfig.maxRecords(spec.get("max_records").asLong());
            buffer = spec.has("max_bytes") ? (Suppressed.BufferConfig<?>) buffer.withMaxBytes(spec.get("max_bytes").asLong()) : buffer;
        } else if (spec.has("max_bytes")) {
            buffer = Suppressed.BufferConfig.maxBytes(spec.get("max_bytes").asLong());
        }
        if (spec.path("when_full").asText().equals("shut_down")) {
            buffer = buffer.shutDownWhenFull();
        }
        if (spec.has("logging")) {
            buffer = (Suppressed.BufferConfig<?>) (spec.get("logging").isObject()
                ? buffer.withLoggingEnabled(strings(spec.get("logging"))) : buffer.withLoggingDisabled());
        }
        return buffer;
    }
}
