package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Merger;
import org.apache.kafka.streams.kstream.Predicate;
import org.apache.kafka.streams.kstream.Reducer;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.ValueJoinerWithKey;
import org.apache.kafka.streams.kstream.ValueMapper;
import org.apache.kafka.streams.kstream.ValueMapperWithKey;
import org.apache.kafka.streams.processor.RecordContext;
import org.apache.kafka.streams.processor.TopicNameExtractor;

/** Expressions as the functional interfaces of the DSL. Each result has one interface only, which decides the overload. */
final class Functions {
    private Functions() { }

    static Map<String, Object> variables(Object... namesAndValues) {
        Map<String, Object> variables = new HashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            variables.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return variables;
    }

    private static Object evaluate(JsonNode expression, Object... namesAndValues) {
        return Expressions.evaluate(expression, variables(namesAndValues));
    }

    static Predicate<Object, Object> predicate(JsonNode e) {
        return (k, v) -> (Boolean) evaluate(e, "k", k, "v", v);
    }

    static KeyValueMapper<Object, Object, Object> keyValueMapper(JsonNode e) {
        return (k, v) -> evaluate(e, "k", k, "v", v);
    }

    static Object valueMapper(JsonNode e) {
        if (Expressions.mentions(e, "k")) {
            return (ValueMapperWithKey<Object, Object, Object>) (k, v) -> evaluate(e, "k", k, "v", v);
        }
        return (ValueMapper<Object, Object>) v -> evaluate(e, "v", v);
    }

    static Object joiner(JsonNode e) {
        if (Expressions.mentions(e, "k")) {
            return (ValueJoinerWithKey<Object, Object, Object, Object>) (k, l, r) -> evaluate(e, "k", k, "l", l, "r", r);
        }
        return (ValueJoiner<Object, Object, Object>) (l, r) -> evaluate(e, "l", l, "r", r);
    }

    static Object foreignKey(JsonNode e) {
        if (Expressions.mentions(e, "k")) {
            return (BiFunction<Object, Object, Object>) (k, v) -> evaluate(e, "k", k, "v", v);
        }
        return (Function<Object, Object>) v -> evaluate(e, "v", v);
    }

    static Reducer<Object> reducer(JsonNode e) {
        return (agg, v) -> evaluate(e, "agg", agg, "v", v);
    }

    static Aggregator<Object, Object, Object> aggregator(JsonNode e) {
        return (k, v, agg) -> evaluate(e, "k", k, "v", v, "agg", agg);
    }

    static Initializer<Object> initializer(JsonNode e) {
        return () -> evaluate(e);
    }

    static Merger<Object, Object> merger(JsonNode e) {
        return (k, a, b) -> evaluate(e, "k", k, "a", a, "b", b);
    }

    static TopicNameExtractor<Object, Object> topic(JsonNode e) {
        return new TopicNameExtractor<>() {
            @Override
            public String extract(Object key, Object value, RecordContext context) {
                return (String) evaluate(e, "k", key, "v", value, "ts", context.timestamp(), "topic", context.topic());
            }

            @Override
            public String toString() {
                return "BY-EXPRESSION"; // shown by describe()
            }
        };
    }
}
