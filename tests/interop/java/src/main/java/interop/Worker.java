package interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * Runs apps on Apache Kafka Streams, one after the other, as tests/interop/side.py tells it on standard input. The same lines
 * as tests/interop/worker.py understands:
 *
 *   start topology=NAME topics=PREFIX setting=value ...     answered by "running", or by "failed REASON"
 *   close                                                   answered by "closed", after a commit, having left the group
 *   describe topology=NAME topics=PREFIX                    answered by the lines of the topology and "described"
 *
 * The end of the input ends the process without a word to the group.
 */
public final class Worker {
    private static final long START_SECONDS = 120;

    private KafkaStreams streams;

    private Worker() { }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Worker worker = new Worker();
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            System.out.println(worker.obey(line));
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private String obey(String line) throws InterruptedException {
        Map<String, String> settings = new HashMap<>();
        String[] words = line.split(" ");
        for (int i = 1; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        return switch (words[0]) {
            case "start" -> start(topology(settings), settings);
            case "close" -> close();
            case "describe" -> topology(settings).describe() + "described";
            default -> "failed unknown order " + words[0];
        };
    }

    private static Topology topology(Map<String, String> settings) {
        return Topologies.named(settings.remove("topology"), settings.remove("topics"));
    }

    private String start(Topology topology, Map<String, String> settings) throws InterruptedException {
        Properties properties = new Properties();
        properties.putAll(settings);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        BlockingQueue<String> outcome = new LinkedBlockingQueue<>();
        streams = new KafkaStreams(topology, properties);
        streams.setStateListener((state, before) -> {
            if (state == KafkaStreams.State.RUNNING) {
                outcome.add("running");
            }
        });
        streams.setUncaughtExceptionHandler(error -> {
            outcome.add("failed " + String.valueOf(error).replace('\n', ' '));
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        String answer = outcome.poll(START_SECONDS, TimeUnit.SECONDS);
        return answer == null ? "failed not running after " + START_SECONDS + " s" : answer;
    }

    /** By default Java's members stay in the group until their session times out, and nobody else could join before. */
    private String close() {
        streams.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
        return "closed";
    }
}
