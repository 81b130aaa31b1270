package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.util.HexFormat;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.kstream.SessionWindowedDeserializer;
import org.apache.kafka.streams.kstream.SessionWindowedSerializer;
import org.apache.kafka.streams.kstream.TimeWindowedDeserializer;
import org.apache.kafka.streams.kstream.TimeWindowedSerializer;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.kstream.internals.TimeWindow;

/** Serdes by their names in the scenario format, and the JSON form of keys and values. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Codecs {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private Codecs() { }

    /** Text that cannot be written with `!` in it, nor read with `?` in it. */
    public static final class StrictText implements Serde<String> {
        @Override
        public Serializer<String> serializer() {
            StringSerializer plain = new StringSerializer();
            return (topic, text) -> {
                refuse(text, "!");
                return plain.serialize(topic, text);
            };
        }

        @Override
        public Deserializer<String> deserializer() {
            StringDeserializer plain = new StringDeserializer();
            return (topic, data) -> {
                String text = plain.deserialize(topic, data);
                refuse(text, "?");
                return text;
            };
        }

        private static void refuse(String text, String mark) {
            if (text != null && text.contains(mark)) {
                throw new SerializationException("refused " + text);
            }
        }
    }

    static Serde<Object> serde(JsonNode spec) {
        if (spec.has("time_windowed")) {
            Serde<Object> inner = serde(spec.get("time_windowed"));
            return (Serde) Serdes.serdeFrom(new TimeWindowedSerializer<>(inner.serializer()),
                new TimeWindowedDeserializer<>(inner.deserializer(), spec.get("size").asLong()));
        }
        if (spec.has("session_windowed")) {
            Serde<Object> inner = serde(spec.get("session_windowed"));
            return (Serde) Serdes.serdeFrom(new SessionWindowedSerializer<>(inner.serializer()),
                new SessionWindowedDeserializer<>(inner.deserializer()));
        }
        return (Serde) switch (spec.asText()) {
            case "string" -> Serdes.String();
            case "long" -> Serdes.Long();
            case "int" -> Serdes.Integer();
            case "double" -> Serdes.Double();
            case "bytes", "hex" -> Serdes.ByteArray();
            case "string_strict" -> new StrictText();
            default -> throw new MalformedScenario("unknown serde " + spec);
        };
    }

    /** The class that Kafka's configuration wants in `default.key.serde`. */
    static Class<?> serdeClass(JsonNode spec) {
        return serde(spec).getClass();
    }

    /** How a topic's content is shown and written; `string_strict` there is ordinary text. */
    private static Serde<Object> display(JsonNode spec) {
        return spec.asText().equals("string_strict") ? (Serde) Serdes.String() : serde(spec);
    }

    static byte[] encode(JsonNode spec, JsonNode value) {
        if (value.isNull()) {
            return null;
        }
        return display(spec).serializer().serialize("", typed(spec, value));
    }

    private static Object typed(JsonNode spec, JsonNode value) {
        if (spec.has("time_windowed")) {
            return new Windowed<>(typed(spec.get("time_windowed"), value.get(0)),
                new TimeWindow(value.get(1).asLong(), value.get(2).asLong()));
        }
        if (spec.has("session_windowed")) {
            return new Windowed<>(typed(spec.get("session_windowed"), value.get(0)),
                new SessionWindow(value.get(1).asLong(), value.get(2).asLong()));
        }
        return switch (spec.asText()) {
            case "long" -> value.longValue();
            case "int" -> value.intValue();
            case "double" -> value.doubleValue();
            case "bytes", "hex" -> HexFormat.of().parseHex(value.asText());
            default -> value.asText();
        };
    }

    /** Bytes as a declared topic shows them. */
    static JsonNode decode(JsonNode spec, byte[] data) {
        if (data == null) {
            return JSON.nullNode();
        }
        try {
            return json(display(spec).deserializer().deserialize("", data));
        } catch (SerializationException | java.nio.BufferUnderflowException misfit) {
            return JSON.objectNode().put("hex", hex(data));
        }
    }

    static String hex(byte[] data) {
        return HexFormat.of().formatHex(data);
    }

    /** A value as the file shows it: in stores, and where `peek` saw it. */
    static JsonNode json(Object value) {
        if (value == null) {
            return JSON.nullNode();
        }
        if (value instanceof Windowed<?> w) {
            ArrayNode shown = JSON.arrayNode();
            shown.add(json(w.key()));
            return shown.add(w.window().start()).add(w.window().end());
        }
        if (value instanceof byte[] data) {
            return JSON.textNode(hex(data));
        }
        if (value instanceof Long || value instanceof Integer) {
            return JSON.numberNode(((Number) value).longValue());
        }
        if (value instanceof Double d) {
            return JSON.numberNode(d);
        }
        if (value instanceof Boolean b) {
            return JSON.booleanNode(b);
        }
        return JSON.textNode(value.toString());
    }
}
