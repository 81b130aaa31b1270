package bench;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;

/** One stream thread, defaults elsewhere. -Dks.NAME=VALUE sets any setting, to try a tuned Java. */
public final class Main {
    private static final List<String> CACHED = List.of("W3", "W4c", "W5", "W6");

    public static void main(final String[] arguments) {
        final String code = arguments[0];
        final Map<String, String> given = new HashMap<>();
        for (int i = 1; i + 1 < arguments.length; i += 2) {
            given.put(arguments[i].substring(2), arguments[i + 1]);
        }
        final KafkaStreams streams = new KafkaStreams(
            Workloads.topology(code, given.get("input"), given.get("output"), given.get("partner")), settings(code, given));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
            return null;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
    }

    private static Properties settings(final String code, final Map<String, String> given) {
        final boolean exactlyOnce = code.equals("W7");
        final Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, given.get("app-id"));
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given.get("bootstrap"));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, given.get("state-dir"));
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, exactlyOnce ? 100 : 1000);
        settings.put("auto.offset.reset", "earliest");
        settings.put("session.timeout.ms", 10_000); // it does not leave its group when it closes; the restore workload waits for that
        if (!CACHED.contains(code)) {
            settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        }
        if (exactlyOnce) {
            settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        }
        System.getProperties().forEach((name, value) -> {
            if (name.toString().startsWith("ks.")) {
                settings.put(name.toString().substring(3), value);
            }
        });
        return settings;
    }

    private Main() { }
}
