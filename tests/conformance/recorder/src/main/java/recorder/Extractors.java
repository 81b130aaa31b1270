package recorder;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.streams.processor.FailOnInvalidTimestamp;
import org.apache.kafka.streams.processor.LogAndSkipOnInvalidTimestamp;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.UsePartitionTimeOnInvalidTimestamp;
import org.apache.kafka.streams.processor.WallclockTimestampExtractor;

/** Timestamp extractors by their names in the scenario format. */
final class Extractors {
    private static final Pattern DIGITS = Pattern.compile("@([0-9]+)");

    private Extractors() { }

    static Class<? extends TimestampExtractor> byName(String name) {
        return switch (name) {
            case "fail" -> FailOnInvalidTimestamp.class;
            case "log_and_skip" -> LogAndSkipOnInvalidTimestamp.class;
            case "use_partition_time" -> UsePartitionTimeOnInvalidTimestamp.class;
            case "wallclock" -> WallclockTimestampExtractor.class;
            case "value" -> InValue.class;
            case "value_or_fail" -> InValueOrFail.class;
            case "value_or_skip" -> InValueOrSkip.class;
            case "value_or_partition_time" -> InValueOrPartitionTime.class;
            default -> throw new MalformedScenario("unknown timestamp extractor " + name);
        };
    }

    static TimestampExtractor make(String name) {
        try {
            return byName(name).getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static long timestampIn(Object value) {
        Matcher found = DIGITS.matcher(value instanceof String text ? text : "");
        return found.find() ? Long.parseLong(found.group(1)) : -1;
    }

    /** Hands out what it found, -1 included. */
    public static final class InValue implements TimestampExtractor {
        @Override
        public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
            return timestampIn(record.value());
        }
    }

    public static final class InValueOrFail extends FailOnInvalidTimestamp {
        @Override
        public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
            long found = timestampIn(record.value());
            return found >= 0 ? found : onInvalidTimestamp(record, found, partitionTime);
        }
    }

    public static final class InValueOrSkip extends LogAndSkipOnInvalidTimestamp {
        @Override
        public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
            long found = timestampIn(record.value());
            return found >= 0 ? found : onInvalidTimestamp(record, found, partitionTime);
        }
    }

    public static final class InValueOrPartitionTime extends UsePartitionTimeOnInvalidTimestamp {
        @Override
        public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
            long found = timestampIn(record.value());
            return found >= 0 ? found : onInvalidTimestamp(record, found, partitionTime);
        }
    }
}
