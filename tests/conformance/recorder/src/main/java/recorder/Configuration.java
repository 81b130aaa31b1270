package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.streams.errors.ErrorHandlerContext;
import org.apache.kafka.streams.errors.LogAndContinueExceptionHandler;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.errors.ProductionExceptionHandler;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;

/** The configuration of a scenario as Kafka Streams takes it: words become classes, and what every run needs is added. */
final class Configuration {
    private static final String[] EMIT_INTERVALS = {
        "__emit.interval.ms.kstreams.windowed.aggregation__",
        "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__",
    };

    private Configuration() { }

    /** `continue` for production: the record is lost, and no dead letter is written. */
    public static final class DropUnsendable implements ProductionExceptionHandler {
        @Override
        public Response handleError(ErrorHandlerContext context, ProducerRecord<byte[], byte[]> record, Exception error) {
            return Response.resume();
        }

        @Override
        @SuppressWarnings("rawtypes")
        public Response handleSerializationError(ErrorHandlerContext context, ProducerRecord record, Exception error,
                                                 SerializationExceptionOrigin origin) {
            return Response.resume();
        }

        @Override
        public void configure(Map<String, ?> configs) { }
    }

    static Properties properties(JsonNode config, String stateDirectory) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", "localhost:1");
        properties.put("state.dir", stateDirectory);
        for (String interval : EMIT_INTERVALS) {
            properties.put(interval, 0L);
        }
        config.properties().forEach(entry -> properties.put(entry.getKey(), setting(entry.getKey(), entry.getValue())));
        return properties;
    }

    private static Object setting(String name, JsonNode value) {
        boolean continues = value.asText().equals("continue");
        return switch (name) {
            case "default.key.serde", "default.value.serde" -> Codecs.serdeClass(value);
            case "default.timestamp.extractor" -> Extractors.byName(value.asText());
            case "deserialization.exception.handler" -> continues ? LogAndContinueExceptionHandler.class : value.asText();
            case "processing.exception.handler" ->
                continues ? LogAndContinueProcessingExceptionHandler.class : value.asText();
            case "production.exception.handler" -> continues ? DropUnsendable.class : value.asText();
            case "dsl.store.suppliers.class" -> value.asText().equals("in_memory")
                ? BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class
                : BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class;
            default -> value.asText();
        };
    }
}
