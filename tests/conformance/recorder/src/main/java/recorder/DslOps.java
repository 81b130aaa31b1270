package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.BranchedKStream;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.ForeachAction;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Printed;
import org.apache.kafka.streams.kstream.SessionWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;

/** The DSL ops of the scenario format as calls of the DSL. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class DslOps {
    private static final List<Class<?>> TYPES = List.of(KStream.class, KTable.class, GlobalKTable.class, KGroupedStream.class,
        KGroupedTable.class, TimeWindowedKStream.class, SessionWindowedKStream.class, CogroupedKStream.class,
        TimeWindowedCogroupedKStream.class, SessionWindowedCogroupedKStream.class);

    private final JsonNode op;
    private final Build build;

    private DslOps(JsonNode op, Build build) {
        this.op = op;
        this.build = build;
    }

    static Object apply(JsonNode op, Build build) {
        return new DslOps(op, build).apply();
    }

    private Object apply() {
        String name = op.get("op").asText();
        return switch (name) {
            case "stream", "table", "global_table", "add_state_store", "add_global_store" -> source(name);
            case "filter" -> call("filter", Functions.predicate(op.get("pred")), name(), materialized());
            case "filter_not" -> call("filterNot", Functions.predicate(op.get("pred")), name(), materialized());
            case "map_values" -> call("mapValues", Functions.valueMapper(op.get("fn")), name(), materialized());
            case "flat_map_values" -> call("flatMapValues", Functions.valueMapper(op.get("fn")), name());
            case "map" -> call("map", Functions.keyValueMapper(op.get("fn")), name());
            case "flat_map" -> call("flatMap", Functions.keyValueMapper(op.get("fn")), name());
            case "select_key" -> call("selectKey", Functions.keyValueMapper(op.get("fn")), name());
            case "peek", "foreach" -> call(name, watcher(), name());
            case "print" -> call("print", op.has("named") ? Printed.toSysOut().withName(text("named")) : Printed.toSysOut());
            case "merge" -> call("merge", build.named(text("with")), name());
            case "split" -> split();
            case "repartition" -> call("repartition", op.has("repartitioned") ? Specs.repartitioned(op.get("repartitioned")) : null);
            case "to" -> call("to", op.has("topic_fn") ? Functions.topic(op.get("topic_fn")) : text("topic"),
                op.has("produced") ? Specs.produced(op.get("produced")) : null);
            case "to_table" -> call("toTable", name(), materialized());
            case "to_stream" -> call("toStream", op.has("fn") ? Functions.keyValueMapper(op.get("fn")) : null, name());
            case "process" -> call("process", Processors.processor(op.get("processor")), name(), stores());
            case "process_values" -> call("processValues", Processors.fixedKey(op.get("processor")), name(), stores());
            case "transform_values" ->
                call("transformValues", Processors.transformer(op.get("transformer")), materialized(), name(), stores());
            case "suppress" -> call("suppress", Specs.suppressed(op.get("suppressed")));
            default -> grouping(name);
        };
    }

    private Object grouping(String name) {
        return switch (name) {
            case "group_by_key" -> call("groupByKey", grouped());
            case "group_by" -> call("groupBy", Functions.keyValueMapper(op.get("fn")), grouped());
            case "windowed_by" -> call("windowedBy", Specs.window(op.get("window")));
            case "emit_strategy" -> call("emitStrategy", text("strategy").equals("on_window_close")
                ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate());
            case "count" -> aggregated("count");
            case "reduce" -> op.has("fn")
                ? aggregated("reduce", Functions.reducer(op.get("fn")))
                : aggregated("reduce", Functions.reducer(op.get("adder")), Functions.reducer(op.get("subtractor")));
            case "aggregate" -> aggregate();
            case "cogroup" -> call("cogroup", op.has("with") ? build.named(text("with")) : null, Functions.aggregator(op.get("fn")));
            case "join" -> join("join");
            case "left_join" -> join("leftJoin");
            case "outer_join" -> join("outerJoin");
            default -> throw new MalformedScenario("unknown op " + name);
        };
    }

    // --- parameters ---------------------------------------------------------------------------------------------------

    private String text(String field) {
        return op.get(field).asText();
    }

    private Named name() {
        return op.has("named") ? Named.as(text("named")) : null;
    }

    private Materialized materialized() {
        return op.has("materialized") ? Specs.materialized(op.get("materialized")) : null;
    }

    private Object grouped() {
        return op.has("grouped") ? Specs.grouped(op.get("grouped")) : null;
    }

    private String[] stores() {
        List<String> stores = new ArrayList<>();
        op.path("stores").forEach(store -> stores.add(store.asText()));
        return stores.toArray(new String[0]);
    }

    private ForeachAction<Object, Object> watcher() {
        String tag = text("tag");
        return (key, value) -> build.seen.add(new Build.Seen(tag, key, value));
    }

    private Object call(String method, Object... arguments) {
        return Overloads.call(type(), build.receiver(op), method, arguments);
    }

    private Class<?> type() {
        Object receiver = build.receiver(op);
        return TYPES.stream().filter(type -> type.isInstance(receiver)).findFirst()
            .orElseThrow(() -> new MalformedScenario("cannot be a receiver: " + receiver));
    }

    // --- ops ----------------------------------------------------------------------------------------------------------

    private Object source(String name) {
        JsonNode consumed = op.path("consumed");
        switch (name) {
            case "stream":
                if (op.has("pattern")) {
                    return build.builder.stream(Pattern.compile(text("pattern")), Specs.consumed(consumed));
                }
                List<String> topics = new ArrayList<>();
                op.get("topics").forEach(topic -> topics.add(topic.asText()));
                return build.builder.stream(topics, Specs.consumed(consumed));
            case "table":
            case "global_table":
                return Overloads.call(build.builder.getClass(), build.builder, name.equals("table") ? "table" : "globalTable",
                    text("topic"), op.has("consumed") ? Specs.consumed(consumed) : null, materialized());
            case "add_state_store":
                return build.builder.addStateStore(Specs.store(op.get("store")));
            default:
                return build.builder.addGlobalStore(Specs.store(op.get("store")), text("topic"), Specs.consumed(consumed),
                    (org.apache.kafka.streams.processor.api.ProcessorSupplier) Processors.processor(op.get("processor")));
        }
    }

    private Object split() {
        KStream<Object, Object> stream = (KStream<Object, Object>) build.receiver(op);
        BranchedKStream<Object, Object> branched = op.has("named") ? stream.split(name()) : stream.split();
        for (JsonNode branch : op.get("branches")) {
            branched = branch.has("name")
                ? branched.branch(Functions.predicate(branch.get("pred")), Branched.as(branch.get("name").asText()))
                : branched.branch(Functions.predicate(branch.get("pred")));
        }
        Map<String, KStream<Object, Object>> streams;
        if (!op.has("default")) {
            streams = branched.noDefaultBranch();
        } else if (op.get("default").has("name")) {
            streams = branched.defaultBranch(Branched.as(op.get("default").get("name").asText()));
        } else {
            streams = branched.defaultBranch();
        }
        build.branches.put(text("id"), streams.keySet().stream().sorted().toList());
        String splitter = op.has("named") ? Pattern.quote(text("named")) : "KSTREAM-BRANCH-[0-9]{10}";
        streams.forEach((key, found) -> build.results.put(text("id") + "." + key.replaceFirst("^" + splitter, ""), found));
        return null;
    }

    /** A name without `materialized` is not an overload everywhere; then an empty Materialized stands in. */
    private Object aggregated(String method, Object... functions) {
        List<Object> arguments = new ArrayList<>(List.of(functions));
        arguments.add(name());
        arguments.add(materialized());
        if (op.has("named") && !op.has("materialized") && !Overloads.exists(type(), method, arguments.toArray())) {
            arguments.set(arguments.size() - 1, Materialized.with(null, null));
        }
        return call(method, arguments.toArray());
    }

    private Object aggregate() {
        List<Object> functions = new ArrayList<>(List.of(Functions.initializer(op.get("init"))));
        for (String field : new String[] {"fn", "adder", "subtractor"}) {
            if (op.has(field)) {
                functions.add(Functions.aggregator(op.get(field)));
            }
        }
        if (op.has("merger")) {
            functions.add(Functions.merger(op.get("merger")));
        }
        return aggregated("aggregate", functions.toArray());
    }

    private Object join(String method) {
        Object other = build.named(text("with"));
        Object joiner = Functions.joiner(op.get("joiner"));
        if (op.has("window")) {
            return call(method, other, joiner, Specs.window(op.get("window")),
                op.has("stream_joined") ? Specs.streamJoined(op.get("stream_joined")) : null);
        }
        if (op.has("fk")) {
            return call(method, other, Functions.foreignKey(op.get("fk")), joiner,
                op.has("table_joined") ? TableJoined.as(op.get("table_joined").get("name").asText()) : null, materialized());
        }
        if (op.has("key_fn")) {
            return call(method, other, Functions.keyValueMapper(op.get("key_fn")), joiner, name());
        }
        return call(method, other, joiner, name(), op.has("joined") ? Specs.joined(op.get("joined")) : null, materialized());
    }
}
