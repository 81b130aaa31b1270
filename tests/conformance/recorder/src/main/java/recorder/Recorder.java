package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;

/**
 * Records what Apache Kafka Streams does with scenarios: reads the files of a directory, ignores the results in them if
 * there are any, and writes them with fresh results to another. `Recorder IN OUT`.
 */
public final class Recorder {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long TIME_LIMIT_SECONDS = 10;
    private static final List<String> GIVEN =
        List.of("format", "name", "family", "about", "api", "config", "topics", "partitions", "wall_clock", "topology");

    private Recorder() { }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Path out = Files.createDirectories(Path.of(arguments[1]));
        List<Path> files;
        try (Stream<Path> found = Files.list(Path.of(arguments[0]))) {
            files = found.filter(path -> path.toString().endsWith(".json")).sorted().toList();
        }
        int recorded = 0;
        for (Path file : files) {
            try {
                Files.writeString(out.resolve(file.getFileName()), formatted(inTime(JSON.readTree(file.toFile()))));
                recorded++;
            } catch (ExecutionException | TimeoutException error) {
                System.err.println(file.getFileName() + " was not recorded: " + (error.getCause() == null ? error : error.getCause()));
            }
        }
        System.out.println(recorded + " of " + files.size() + " scenarios recorded");
        System.exit(recorded == files.size() ? 0 : 1);
    }

    /** Some scans of cached stores visit every segment since the beginning of time: such scenarios are given up. */
    private static ObjectNode inTime(JsonNode scenario) throws ExecutionException, TimeoutException, InterruptedException {
        FutureTask<ObjectNode> recording = new FutureTask<>(() -> record(scenario));
        Thread thread = new Thread(recording, "recording");
        thread.setDaemon(true);
        thread.start();
        return recording.get(TIME_LIMIT_SECONDS, TimeUnit.SECONDS);
    }

    private static ObjectNode record(JsonNode scenario) throws IOException, ReflectiveOperationException {
        ObjectNode result = JSON.createObjectNode();
        for (String field : GIVEN) {
            if (scenario.has(field)) {
                result.set(field, scenario.get(field));
            }
        }
        Path state = Files.createTempDirectory("recorder");
        try {
            record(scenario, result, state);
        } catch (Build.Failed failed) {
            result.set("error", error(failed.at, failed.getCause()));
            if (failed.at.equals("driver")) {
                result.putArray("steps");
                result.put("dropped", 0).putObject("stores");
            }
        } finally {
            delete(state);
        }
        return result;
    }

    private static void record(JsonNode scenario, ObjectNode result, Path state) throws Build.Failed {
        Properties properties = Configuration.properties(scenario.get("config"), state.toString());
        Build build = Build.of(scenario, properties);
        String description = Build.staged("build", () -> build.topology.describe().toString());
        ArrayNode lines = result.putArray("describe");
        for (String line : description.split("\n", -1)) {
            lines.add(line);
        }
        if (!build.branches.isEmpty()) {
            ObjectNode branches = result.putObject("branches");
            build.branches.forEach((id, keys) -> keys.forEach(branches.withArray("/" + id)::add));
        }
        // The assignor changes the topology it looks at, so it gets one of its own.
        Build second = Build.of(scenario, properties);
        Assignment assignment = Build.staged("assign", () -> Assignment.of(scenario, second.topology, properties));
        result.set("subtopologies", assignment.subtopologies);
        result.set("internal_topics", assignment.internalTopics);
        result.set("copartition", assignment.copartition);
        if (scenario.has("steps")) {
            Script script = Build.staged("driver", () -> new Script(scenario, build, properties));
            script.play(result);
            script.close();
        }
    }

    static ObjectNode error(Object at, Throwable error) {
        ObjectNode shown = JSON.createObjectNode();
        shown.set("at", JSON.valueToTree(at));
        shown.put("class", error.getClass().getSimpleName());
        List<String> causes = new ArrayList<>();
        for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
            causes.add(cause.getClass().getSimpleName());
        }
        if (!causes.isEmpty()) {
            causes.forEach(shown.putArray("causes")::add);
        }
        return shown.put("message", String.valueOf(error.getMessage()).split("\n", 2)[0]);
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> found = Files.walk(directory)) {
            for (Path path : found.sorted(java.util.Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    /** One line per op, step and line of the description, so that a difference between two recordings can be read. */
    private static String formatted(ObjectNode result) throws IOException {
        StringBuilder text = new StringBuilder("{\n");
        Iterator<Map.Entry<String, JsonNode>> fields = result.properties().iterator();
        while (fields.hasNext()) {
            Map.Entry<String, JsonNode> field = fields.next();
            text.append(" \"").append(field.getKey()).append("\": ");
            if (field.getValue().isArray() && !field.getValue().isEmpty()) {
                List<String> items = new ArrayList<>();
                for (JsonNode item : field.getValue()) {
                    items.add("  " + JSON.writeValueAsString(item));
                }
                text.append("[\n").append(String.join(",\n", items)).append("\n ]");
            } else {
                text.append(JSON.writeValueAsString(field.getValue()));
            }
            text.append(fields.hasNext() ? ",\n" : "\n");
        }
        return text.append("}\n").toString();
    }
}
