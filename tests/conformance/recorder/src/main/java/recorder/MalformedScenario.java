package recorder;

/** The file says something that cannot be recorded; no exception of Kafka Streams is ever wrapped in this. */
final class MalformedScenario extends RuntimeException {
    private static final long serialVersionUID = 1L;

    MalformedScenario(String message) {
        super(message);
    }
}
