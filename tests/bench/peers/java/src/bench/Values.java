package bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** What is in the topics, and typed JSON for it. */
final class Values {
    record Order(long id, String customer, double amount, String item, long ts) { }

    record Priced(long id, String customer, long cents, boolean big, long ts) { }

    record Customer(String name, String tier, String country) { }

    record Enriched(long id, String customer, double amount, String name, String tier) { }

    record WindowCount(long start, long count, long end) { }

    static <T> Serde<T> json(final Class<T> type) {
        final ObjectMapper mapper = new ObjectMapper();
        final ObjectReader reader = mapper.readerFor(type);
        final ObjectWriter writer = mapper.writerFor(type);
        return Serdes.serdeFrom(
            (topic, value) -> {
                try {
                    return value == null ? null : writer.writeValueAsBytes(value);
                } catch (final IOException error) {
                    throw new UncheckedIOException(error);
                }
            },
            (topic, data) -> {
                try {
                    return data == null ? null : reader.readValue(data);
                } catch (final IOException error) {
                    throw new UncheckedIOException(error);
                }
            });
    }

    private Values() { }
}
