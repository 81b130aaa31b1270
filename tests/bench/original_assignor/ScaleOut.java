/*
 * What the original's HighAvailabilityTaskAssignor does when one process joins: the numbers in docs/decisions/0007. By hand, with the
 * jars that `make record` has downloaded (kafka-streams and kafka-clients 4.3.1, slf4j-api):
 *
 *     javac -cp JARS -d build/original tests/bench/original_assignor/ScaleOut.java
 *     java -cp JARS:build/original ScaleOut TASKS PROCESSES WARM_UPS STANDBYS
 *
 * After every round all copies have caught up, and what a process has given up is deleted. A round is a probing rebalance.
 */

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

public final class ScaleOut {
    private static final long RUNNING = -2;
    private static final long FULL_LAG = 1_000_000;

    private final Set<TaskId> tasks = new TreeSet<>();
    private final List<UUID> processes = new ArrayList<>();
    private final Map<TaskId, UUID> places = new TreeMap<>();
    private final Map<UUID, Set<TaskId>> state = new TreeMap<>();
    private final Map<UUID, Set<TaskId>> standbys = new TreeMap<>();
    private final AssignmentConfigs configs;
    private int moves;

    private ScaleOut(int taskCount, int maxWarmups, int numStandbys) {
        configs = new AssignmentConfigs(10_000L, maxWarmups, numStandbys, 600_000L, List.of());
        for (int partition = 0; partition < taskCount; partition++) {
            tasks.add(new TaskId(0, partition));
        }
    }

    private int roundsUntilReady() {
        int rounds = 0;
        while (assignedAndWaiting()) {
            rounds++;
        }
        return rounds;
    }

    private boolean assignedAndWaiting() {
        Map<ProcessId, ClientState> clients = new TreeMap<>();
        for (UUID process : processes) {
            clients.put(new ProcessId(process), client(process));
        }
        RackAwareTaskAssignor noRacks =
            new RackAwareTaskAssignor(null, Map.of(), Map.of(), Map.of(), null, null, configs, Time.SYSTEM);
        boolean waiting =
            new HighAvailabilityTaskAssignor().assign(clients, new TreeSet<>(tasks), new TreeSet<>(tasks), noRacks, configs);
        clients.forEach((process, client) -> carryOut(process.id(), client));
        return waiting;
    }

    private ClientState client(UUID process) {
        Set<TaskId> active = new TreeSet<>();
        Map<TaskId, Long> lags = new TreeMap<>();
        for (TaskId task : tasks) {
            boolean here = process.equals(places.get(task));
            boolean ready = state.getOrDefault(process, Set.of()).contains(task);
            lags.put(task, here ? RUNNING : ready ? 0 : FULL_LAG);
            if (here) {
                active.add(task);
            }
        }
        return new ClientState(
            active, standbys.getOrDefault(process, Set.of()), lags, Map.of(), 1, new ProcessId(process));
    }

    private void carryOut(UUID process, ClientState client) {
        for (TaskId task : client.activeTasks()) {
            UUID before = places.put(task, process);
            if (before != null && !before.equals(process)) {
                moves++;
            }
        }
        standbys.put(process, new TreeSet<>(client.standbyTasks()));
        state.put(process, new TreeSet<>(client.activeTasks()));
        state.get(process).addAll(client.standbyTasks());
    }

    public static void main(String[] args) {
        for (int seed = 0; seed < 3; seed++) {
            Random random = new Random(seed);
            ScaleOut group =
                new ScaleOut(Integer.parseInt(args[0]), Integer.parseInt(args[2]), Integer.parseInt(args[3]));
            for (int number = 0; number < Integer.parseInt(args[1]); number++) {
                group.processes.add(new UUID(random.nextLong(), random.nextLong()));
            }
            group.roundsUntilReady();
            group.moves = 0;
            group.processes.add(new UUID(random.nextLong(), random.nextLong()));
            System.out.println("rounds " + group.roundsUntilReady() + ", moves of active tasks " + group.moves);
        }
    }
}
