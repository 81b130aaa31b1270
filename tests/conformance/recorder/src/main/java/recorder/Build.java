package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyConfig;

/** One topology built from the ops of a scenario, and what the rest of the recording needs to know about it. */
final class Build {
    /** An error of Kafka Streams, with its place as the format names it: the index of an op, or a stage. */
    static final class Failed extends Exception {
        private static final long serialVersionUID = 1L;
        final transient Object at;

        Failed(Object at, Exception cause) {
            super(cause);
            this.at = at;
        }
    }

    /** What `peek` and `foreach` saw. */
    record Seen(String tag, Object key, Object value) { }

    final Map<String, List<String>> branches = new TreeMap<>();
    final List<Seen> seen = new ArrayList<>();
    final Map<String, Object> results = new HashMap<>();
    Object previous;
    StreamsBuilder builder;
    Topology topology;

    static Build of(JsonNode scenario, Properties properties) throws Failed {
        Build build = new Build();
        boolean isPapi = scenario.path("api").asText().equals("papi");
        if (isPapi) {
            build.topology = new Topology();
        } else {
            build.builder = staged("build", () -> new StreamsBuilder(new TopologyConfig(new StreamsConfig(properties))));
        }
        JsonNode ops = scenario.get("topology");
        for (int i = 0; i < ops.size(); i++) {
            JsonNode op = ops.get(i);
            build.previous = staged(i, () -> isPapi ? PapiOps.apply(op, build.topology) : DslOps.apply(op, build));
            if (op.has("id")) {
                build.results.put(op.get("id").asText(), build.previous);
            }
        }
        if (!isPapi) {
            build.topology = staged("build", () -> build.builder.build(properties));
        }
        return build;
    }

    interface Stage<T> {
        T run() throws Exception;
    }

    /** Runs a stage, and says where an error of Kafka Streams happened. */
    static <T> T staged(Object at, Stage<T> stage) throws Failed {
        try {
            return stage.run();
        } catch (MalformedScenario malformed) {
            throw malformed;
        } catch (Exception error) {
            throw new Failed(at, error);
        }
    }

    Object receiver(JsonNode op) {
        Object receiver = op.has("on") ? named(op.get("on").asText()) : previous;
        if (receiver == null) {
            throw new MalformedScenario("nothing to work on: " + op);
        }
        return receiver;
    }

    Object named(String id) {
        if (!results.containsKey(id)) {
            throw new MalformedScenario("no op has the id " + id);
        }
        return results.get(id);
    }
}
