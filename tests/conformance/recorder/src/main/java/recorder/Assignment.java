package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.ChangelogTopics;
import org.apache.kafka.streams.processor.internals.InternalTopicConfig;
import org.apache.kafka.streams.processor.internals.InternalTopicManager;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder.TopicsInfo;
import org.apache.kafka.streams.processor.internals.RepartitionTopics;
import org.apache.kafka.streams.processor.internals.TopologyMetadata;
import org.apache.kafka.streams.processor.internals.TopologyMetadata.Subtopology;
import org.apache.kafka.streams.processor.internals.assignment.CopartitionedTopicsEnforcer;

/**
 * What the partition assignor would do with a topology: sub-topologies, task counts and the internal topics that it
 * would create. It runs the assignor's own parts against a cluster that only exists as partition counts.
 */
final class Assignment {
    private static final int DEFAULT_PARTITIONS = 4;
    private static final ObjectMapper JSON = new ObjectMapper();

    final ObjectNode subtopologies = JSON.createObjectNode();
    final ObjectNode internalTopics = JSON.createObjectNode();
    final ArrayNode copartition = JSON.createArrayNode();
    private final Map<String, InternalTopicConfig> created = new TreeMap<>();

    static Assignment of(JsonNode scenario, Topology topology, Properties properties) throws Exception {
        Assignment assignment = new Assignment();
        assignment.compute(scenario, topology, new StreamsConfig(properties));
        return assignment;
    }

    private void compute(JsonNode scenario, Topology topology, StreamsConfig config) throws Exception {
        InternalTopologyBuilder builder = builderOf(topology);
        TopologyMetadata metadata = new TopologyMetadata(builder, config);
        metadata.buildAndRewriteTopology();
        Map<String, Integer> counts = partitionCounts(scenario);
        subscribe(builder, counts.keySet());
        InternalTopicManager manager = new InternalTopicManager(Time.SYSTEM, null, config) {
            @Override
            public Set<String> makeReady(Map<String, InternalTopicConfig> topics) {
                created.putAll(topics);
                return topics.keySet();
            }
        };
        RepartitionTopics repartition =
            new RepartitionTopics(metadata, manager, new CopartitionedTopicsEnforcer(""), cluster(counts), "");
        repartition.setup();
        repartition.topicPartitionsInfo().keySet().forEach(
            partition -> counts.merge(partition.topic(), partition.partition() + 1, Math::max));
        Map<Subtopology, TopicsInfo> groups = builder.subtopologyToTopicsInfo();
        Map<Subtopology, Set<TaskId>> tasks = tasks(groups, counts);
        new ChangelogTopics(manager, groups, tasks, "").setup();
        groups.forEach((id, info) -> subtopologies.set(String.valueOf(number(id)), shown(info, tasks.get(id).size())));
        showTopics(config);
        builder.copartitionGroups().forEach(group -> copartition.add(sorted(group)));
    }

    private static InternalTopologyBuilder builderOf(Topology topology) throws ReflectiveOperationException {
        Field field = Topology.class.getDeclaredField("internalTopologyBuilder");
        field.setAccessible(true);
        return (InternalTopologyBuilder) field.get(topology);
    }

    private static void subscribe(InternalTopologyBuilder builder, Set<String> topics) throws ReflectiveOperationException {
        Method method = InternalTopologyBuilder.class.getDeclaredMethod("addSubscribedTopicsFromMetadata", Set.class, String.class);
        method.setAccessible(true);
        method.invoke(builder, topics, "");
    }

    private static int number(Subtopology id) {
        try {
            Field field = Subtopology.class.getDeclaredField("nodeGroupId");
            field.setAccessible(true);
            return field.getInt(id);
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** The external topics: those the file counts, and every other that it mentions. */
    private static Map<String, Integer> partitionCounts(JsonNode scenario) {
        Map<String, Integer> counts = new HashMap<>();
        scenario.get("topics").fieldNames().forEachRemaining(topic -> counts.put(topic, DEFAULT_PARTITIONS));
        for (JsonNode op : scenario.get("topology")) {
            op.path("topics").forEach(topic -> counts.put(topic.asText(), DEFAULT_PARTITIONS));
            if (op.has("topic")) {
                counts.put(op.get("topic").asText(), DEFAULT_PARTITIONS);
            }
        }
        scenario.path("partitions").properties().forEach(entry -> counts.put(entry.getKey(), entry.getValue().asInt()));
        return counts;
    }

    private static Cluster cluster(Map<String, Integer> counts) {
        List<PartitionInfo> partitions = new ArrayList<>();
        counts.forEach((topic, count) -> {
            for (int partition = 0; partition < count; partition++) {
                partitions.add(new PartitionInfo(topic, partition, null, new Node[0], new Node[0]));
            }
        });
        return new Cluster("cluster", List.of(), partitions, Set.of(), Set.of());
    }

    private static Map<Subtopology, Set<TaskId>> tasks(Map<Subtopology, TopicsInfo> groups, Map<String, Integer> counts) {
        Map<Subtopology, Set<TaskId>> tasks = new HashMap<>();
        groups.forEach((id, info) -> {
            int partitions = info.sourceTopics.stream().mapToInt(topic -> counts.getOrDefault(topic, 0)).max().orElse(0);
            Set<TaskId> found = new HashSet<>();
            for (int partition = 0; partition < partitions; partition++) {
                found.add(new TaskId(number(id), partition));
            }
            tasks.put(id, found);
        });
        return tasks;
    }

    private static ObjectNode shown(TopicsInfo info, int tasks) {
        ObjectNode shown = JSON.createObjectNode();
        shown.set("sources", sorted(info.sourceTopics));
        shown.set("sinks", sorted(info.sinkTopics));
        shown.set("repartition", sorted(info.repartitionSourceTopics.keySet()));
        shown.set("changelogs", sorted(info.stateChangelogTopics.keySet()));
        return shown.put("tasks", tasks);
    }

    private void showTopics(StreamsConfig config) {
        Map<String, String> defaults = new HashMap<>();
        config.originalsWithPrefix(StreamsConfig.TOPIC_PREFIX).forEach((name, value) -> defaults.put(name, value.toString()));
        long additionalRetention = config.getLong(StreamsConfig.WINDOW_STORE_CHANGE_LOG_ADDITIONAL_RETENTION_MS_CONFIG);
        created.forEach((name, topic) -> {
            ObjectNode configs = JSON.createObjectNode();
            new TreeMap<>(topic.properties(defaults, additionalRetention)).forEach(configs::put);
            ObjectNode shown = internalTopics.putObject(name).put("partitions", topic.numberOfPartitions().orElse(0));
            shown.set("configs", configs);
        });
    }

    private static ArrayNode sorted(Collection<String> names) {
        ArrayNode sorted = JSON.createArrayNode();
        names.stream().sorted().forEach(sorted::add);
        return sorted;
    }
}
