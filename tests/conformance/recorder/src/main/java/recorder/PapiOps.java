package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.AutoOffsetReset;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;

/** The Processor API ops of the scenario format as calls of Topology. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class PapiOps {
    private PapiOps() { }

    static Object apply(JsonNode op, Topology topology) {
        switch (op.get("op").asText()) {
            case "add_source":
                return source(op, topology);
            case "add_processor":
                return topology.addProcessor(text(op, "name"), Processors.processor(op.get("processor")), texts(op, "parents"));
            case "add_sink":
                return sink(op, topology);
            case "add_state_store":
                return topology.addStateStore(Specs.store(op.get("store")), texts(op, "processors"));
            case "connect":
                return topology.connectProcessorAndStateStores(text(op, "processor"), texts(op, "stores"));
            case "add_global_store":
                return topology.addGlobalStore(Specs.store(op.get("store")), text(op, "name"), deserializer(op, "key"),
                    deserializer(op, "value"), text(op, "topic"), text(op, "processor_name"),
                    (ProcessorSupplier) Processors.processor(op.get("processor")));
            case "add_read_only_state_store":
                return topology.addReadOnlyStateStore(Specs.store(op.get("store")), text(op, "name"), deserializer(op, "key"),
                    deserializer(op, "value"), text(op, "topic"), text(op, "processor_name"),
                    (ProcessorSupplier) Processors.processor(op.get("processor")));
            default:
                throw new MalformedScenario("unknown op " + op);
        }
    }

    private static Topology source(JsonNode op, Topology topology) {
        AutoOffsetReset reset = op.has("reset") ? Specs.reset(op.get("reset")) : null;
        TimestampExtractor extractor = op.has("extractor") ? Extractors.make(text(op, "extractor")) : null;
        Deserializer key = deserializer(op, "key");
        Deserializer value = deserializer(op, "value");
        return op.has("pattern")
            ? topology.addSource(reset, text(op, "name"), extractor, key, value, Pattern.compile(text(op, "pattern")))
            : topology.addSource(reset, text(op, "name"), extractor, key, value, texts(op, "topics"));
    }

    private static Topology sink(JsonNode op, Topology topology) {
        Serializer key = serializer(op, "key");
        Serializer value = serializer(op, "value");
        return op.has("topic_fn")
            ? topology.addSink(text(op, "name"), Functions.topic(op.get("topic_fn")), key, value, texts(op, "parents"))
            : topology.addSink(text(op, "name"), text(op, "topic"), key, value, texts(op, "parents"));
    }

    private static Serializer serializer(JsonNode op, String field) {
        Serde<Object> serde = Specs.serde(op, field);
        return serde == null ? null : serde.serializer();
    }

    private static Deserializer deserializer(JsonNode op, String field) {
        Serde<Object> serde = Specs.serde(op, field);
        return serde == null ? null : serde.deserializer();
    }

    private static String text(JsonNode op, String field) {
        return op.get(field).asText();
    }

    private static String[] texts(JsonNode op, String field) {
        List<String> texts = new ArrayList<>();
        op.path(field).forEach(text -> texts.add(text.asText()));
        return texts.toArray(new String[0]);
    }
}
