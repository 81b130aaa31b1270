package recorder;

import java.util.StringJoiner;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.TimestampedWindowStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.WindowStore;

/** The processor `store_script`: the record's value is a command for its store, the answer is text. */
@SuppressWarnings({"unchecked", "rawtypes", "deprecation"})
final class StoreScript {
    private final String[] words;
    private final long timestamp;

    private StoreScript(String command, long timestamp) {
        this.words = command.split(" ");
        this.timestamp = timestamp;
    }

    static String run(StateStore store, String command, long timestamp) {
        StoreScript script = new StoreScript(command, timestamp);
        if (store instanceof VersionedKeyValueStore versioned) {
            return script.versioned(versioned);
        }
        if (store instanceof WindowStore window) {
            return script.window(window, store instanceof TimestampedWindowStore);
        }
        if (store instanceof SessionStore session) {
            return script.session(session);
        }
        return script.keyValue((KeyValueStore) store, store instanceof TimestampedKeyValueStore);
    }

    private String word(int i) {
        return words[i].equals("-") ? null : words[i];
    }

    private long time(int i) {
        return Long.parseLong(words[i]);
    }

    private Object value(int i, boolean timestamped) {
        return timestamped ? ValueAndTimestamp.make(word(i), timestamp) : word(i);
    }

    private static String ok() {
        return "ok";
    }

    private static String answer(Object value) {
        return value instanceof ValueAndTimestamp<?> v ? Expressions.text(v.value()) + "@" + v.timestamp() : Expressions.text(value);
    }

    private static String rows(KeyValueIterator<?, ?> iterator) {
        StringJoiner rows = new StringJoiner(",");
        try (iterator) {
            while (iterator.hasNext()) {
                KeyValue<?, ?> row = iterator.next();
                String key = row.key instanceof Windowed<?> w
                    ? Expressions.text(w.key()) + "@" + w.window().start() + "/" + w.window().end() : Expressions.text(row.key);
                rows.add(key + "=" + answer(row.value));
            }
        }
        return rows.toString();
    }

    private String keyValue(KeyValueStore store, boolean timestamped) {
        switch (words[0]) {
            case "put": store.put(word(1), value(2, timestamped)); return ok();
            case "put_if_absent": return answer(store.putIfAbsent(word(1), value(2, timestamped)));
            case "delete": return answer(store.delete(word(1)));
            case "get": return answer(store.get(word(1)));
            case "range": return rows(store.range(word(1), word(2)));
            case "reverse_range": return rows(store.reverseRange(word(1), word(2)));
            case "all": return rows(store.all());
            case "reverse_all": return rows(store.reverseAll());
            case "prefix": return rows(store.prefixScan(word(1), new StringSerializer()));
            case "count": return String.valueOf(store.approximateNumEntries());
            default: throw new MalformedScenario("unknown command " + words[0]);
        }
    }

    private String window(WindowStore store, boolean timestamped) {
        switch (words[0]) {
            case "put": store.put(word(1), value(2, timestamped), time(3)); return ok();
            case "get": return answer(store.fetch(word(1), time(2)));
            case "fetch": return rows(store.fetch(word(1), time(2), time(3)));
            case "backward_fetch": return rows(store.backwardFetch(word(1), time(2), time(3)));
            case "fetch_range": return rows(store.fetch(word(1), word(2), time(3), time(4)));
            case "backward_fetch_range": return rows(store.backwardFetch(word(1), word(2), time(3), time(4)));
            case "fetch_all": return rows(store.fetchAll(time(1), time(2)));
            case "backward_fetch_all": return rows(store.backwardFetchAll(time(1), time(2)));
            case "all": return rows(store.all());
            case "backward_all": return rows(store.backwardAll());
            default: throw new MalformedScenario("unknown command " + words[0]);
        }
    }

    private Windowed<Object> session(int key, int start, int end) {
        return new Windowed<>(word(key), new SessionWindow(time(start), time(end)));
    }

    private String session(SessionStore store) {
        switch (words[0]) {
            case "put": store.put(session(1, 3, 4), word(2)); return ok();
            case "remove": store.remove(session(1, 2, 3)); return ok();
            case "get": return answer(store.fetchSession(word(1), time(2), time(3)));
            case "fetch": return rows(store.fetch(word(1)));
            case "backward_fetch": return rows(store.backwardFetch(word(1)));
            case "fetch_range": return rows(store.fetch(word(1), word(2)));
            case "backward_fetch_range": return rows(store.backwardFetch(word(1), word(2)));
            case "find": return rows(store.findSessions(word(1), time(2), time(3)));
            case "backward_find": return rows(store.backwardFindSessions(word(1), time(2), time(3)));
            case "find_range": return rows(store.findSessions(word(1), word(2), time(3), time(4)));
            default: throw new MalformedScenario("unknown command " + words[0]);
        }
    }

    private String versioned(VersionedKeyValueStore store) {
        switch (words[0]) {
            case "put": return String.valueOf(store.put(word(1), word(2), time(3)));
            case "delete": return version(store.delete(word(1), time(2)));
            case "get": return version(words.length > 2 ? store.get(word(1), time(2)) : store.get(word(1)));
            default: throw new MalformedScenario("unknown command " + words[0]);
        }
    }

    static String version(VersionedRecord<?> found) {
        if (found == null) {
            return "null";
        }
        String until = found.validTo().isPresent() ? "/" + found.validTo().get() : "";
        return Expressions.text(found.value()) + "@" + found.timestamp() + until;
    }
}
