package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.TimestampedWindowStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.ValueTimestampHeaders;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.WindowStore;

/** The final contents of a store, as the file shows them. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class StoreRows {
    private static final ObjectMapper JSON = new ObjectMapper();

    private StoreRows() { }

    static ObjectNode of(StateStore store, JsonNode scenario) {
        String kind = kind(store);
        ObjectNode shown = JSON.createObjectNode().put("kind", kind);
        if (kind.equals("opaque")) {
            return shown;
        }
        ArrayNode rows = shown.putArray("rows");
        if (store instanceof VersionedKeyValueStore versioned) {
            versions(versioned, scenario, rows);
            return shown;
        }
        try (KeyValueIterator<?, ?> entries = entries(store)) {
            while (entries.hasNext()) {
                rows.add(row(entries.next()));
            }
        }
        return shown;
    }

    private static String kind(StateStore store) {
        String name = store.name();
        if (name.contains("SUBSCRIPTION-STATE-STORE") || name.endsWith("-subscription-store") || name.contains("OUTERSHARED")
                || name.endsWith("-shared-join-store")) {
            return "opaque"; // holds bookkeeping of a join in a form of its own
        }
        if (store instanceof VersionedKeyValueStore) {
            return "versioned";
        }
        if (store instanceof WindowStore) {
            return store instanceof TimestampedWindowStore ? "timestamped_window" : "window";
        }
        if (store instanceof SessionStore) {
            return "session";
        }
        if (store instanceof KeyValueStore) {
            return store instanceof TimestampedKeyValueStore ? "timestamped_kv" : "kv";
        }
        return "opaque";
    }

    private static KeyValueIterator<?, ?> entries(StateStore store) {
        if (store instanceof WindowStore window) {
            return window.all();
        }
        return store instanceof SessionStore session ? session.fetch(null, null) : ((KeyValueStore) store).all();
    }

    private static ArrayNode row(KeyValue<?, ?> entry) {
        ArrayNode row = JSON.createArrayNode().add(Codecs.json(entry.key));
        if (entry.value instanceof ValueTimestampHeaders<?> v) {
            row.add(Codecs.json(v.value()));
            return v.timestamp() < 0 ? row : row.add(v.timestamp()); // -1 where the store below keeps no timestamps
        }
        return entry.value instanceof ValueAndTimestamp<?> v
            ? row.add(Codecs.json(v.value())).add(v.timestamp()) : row.add(Codecs.json(entry.value));
    }

    private static void versions(VersionedKeyValueStore store, JsonNode scenario, ArrayNode rows) {
        Set<String> keys = new TreeSet<>();
        Set<Long> times = new TreeSet<>();
        for (JsonNode step : scenario.get("steps")) {
            if (step.has("pipe")) {
                if (step.get("pipe").get(1).isTextual()) {
                    keys.add(step.get("pipe").get(1).asText());
                }
                times.add(step.get("pipe").get(3).asLong());
            }
        }
        for (String key : keys) {
            rows.addArray().add(key).addNull().add(store.get(key) == null ? null : StoreScript.version(store.get(key)));
            for (long time : times) {
                VersionedRecord<?> found = store.get(key, time);
                if (found != null) {
                    rows.addArray().add(key).add(time).add(StoreScript.version(found));
                }
            }
        }
    }
}
