package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/** Plays the input script of a scenario on the TopologyTestDriver and writes down what came of each step. */
final class Script {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNode HEX = JSON.getNodeFactory().textNode("hex");
    private static final String STACK_TRACE = "__streams.errors.stacktrace";

    private final JsonNode scenario;
    private final Build build;
    private final TopologyTestDriver driver;
    private final List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
    private final boolean readsMachineClock;

    Script(JsonNode scenario, Build build, Properties properties) throws ReflectiveOperationException {
        this.scenario = scenario;
        this.build = build;
        this.driver = new TopologyTestDriver(build.topology, properties, Instant.ofEpochMilli(scenario.path("wall_clock").asLong(0)));
        this.readsMachineClock = scenario.toString().contains("\"wallclock\"");
        watchProducer();
    }

    /** Has the driver's producer keep its records in a list that also tells `sent` of them, in the order of all topics. */
    private void watchProducer() throws ReflectiveOperationException {
        Field producer = TopologyTestDriver.class.getDeclaredField("producer");
        producer.setAccessible(true);
        Field records = MockProducer.class.getDeclaredField("sent");
        records.setAccessible(true);
        records.set(producer.get(driver), new ArrayList<ProducerRecord<byte[], byte[]>>() {
            private static final long serialVersionUID = 1L;

            @Override
            public boolean add(ProducerRecord<byte[], byte[]> record) {
                return sent.add(record) && super.add(record);
            }
        });
    }

    void play(ObjectNode result) {
        ArrayNode steps = result.putArray("steps");
        for (JsonNode step : scenario.get("steps")) {
            ObjectNode played = step(step);
            steps.add(played);
            if (played.has("error")) {
                break;
            }
        }
        result.put("dropped", dropped());
        ObjectNode stores = result.putObject("stores");
        if (!steps.isEmpty() && steps.get(steps.size() - 1).has("error")) {
            return; // a failed task promises nothing about its stores
        }
        new TreeMap<>(driver.getAllStateStores()).forEach((name, store) -> stores.set(name, StoreRows.of(store, scenario)));
    }

    void close() {
        try {
            driver.close();
        } catch (RuntimeException ignored) {
            // After a failed step the task cannot be closed cleanly; its results are recorded already.
            return;
        }
    }

    private ObjectNode step(JsonNode step) {
        ObjectNode played = JSON.createObjectNode();
        played.set(step.has("pipe") ? "pipe" : "advance", step.has("pipe") ? step.get("pipe") : step.get("advance"));
        sent.clear();
        build.seen.clear();
        long droppedBefore = dropped();
        try {
            if (step.has("pipe")) {
                pipe(step.get("pipe"));
            } else {
                driver.advanceWallClockTime(Duration.ofMillis(step.get("advance").asLong()));
            }
        } catch (MalformedScenario malformed) {
            throw malformed;
        } catch (Exception error) {
            played.set("error", Recorder.error("step", error));
        }
        ArrayNode out = played.putArray("out");
        sent.forEach(record -> out.add(shown(record)));
        for (Build.Seen seen : build.seen) {
            out.addArray().add("#" + seen.tag()).add(Codecs.json(seen.key())).add(Codecs.json(seen.value())).addNull();
        }
        if (dropped() != droppedBefore) {
            played.put("dropped", dropped() - droppedBefore);
        }
        return played;
    }

    private void pipe(JsonNode record) {
        String topic = record.get(0).asText();
        JsonNode serdes = scenario.get("topics").get(topic);
        if (serdes == null) {
            throw new MalformedScenario("writes to topic " + topic + ", which is not declared");
        }
        Headers headers = new RecordHeaders();
        record.path(4).forEach(header -> headers.add(header.get(0).asText(),
            header.get(1).isNull() ? null : header.get(1).asText().getBytes(StandardCharsets.UTF_8)));
        byte[] key = Codecs.encode(serdes.get("key"), record.get(1));
        byte[] value = Codecs.encode(serdes.get("value"), record.get(2));
        driver.createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer())
            .pipeInput(new TestRecord<>(key, value, headers, record.get(3).asLong()));
    }

    private long dropped() {
        return (long) driver.metrics().entrySet().stream()
            .filter(entry -> entry.getKey().name().equals("dropped-records-total"))
            .mapToDouble(entry -> ((Number) entry.getValue().metricValue()).doubleValue()).sum();
    }

    private ArrayNode shown(ProducerRecord<byte[], byte[]> record) {
        JsonNode serdes = scenario.get("topics").get(record.topic());
        ArrayNode shown = JSON.createArrayNode().add(record.topic());
        shown.add(Codecs.decode(serdes == null ? HEX : serdes.get("key"), record.key()));
        shown.add(Codecs.decode(serdes == null ? HEX : serdes.get("value"), record.value()));
        if (readsMachineClock) {
            shown.add("*");
        } else {
            shown.add(record.timestamp());
        }
        ArrayNode headers = JSON.createArrayNode();
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(shown(header, serdes != null));
        }
        return headers.isEmpty() ? shown : shown.add(headers);
    }

    private static String shown(Header header, boolean isDeclared) {
        if (header.key().equals(STACK_TRACE)) {
            return "*";
        }
        if (header.value() == null) {
            return null;
        }
        return isDeclared ? new String(header.value(), StandardCharsets.UTF_8) : Codecs.hex(header.value());
    }
}
