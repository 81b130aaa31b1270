package recorder;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;

/** The function language of the scenario format: evaluates an expression with the variables that an op binds. */
final class Expressions {
    private Expressions() { }

    static Object evaluate(JsonNode expression, Map<String, Object> variables) {
        if (expression.isArray()) {
            String name = expression.get(0).asText();
            if (name.equals("if")) {
                boolean holds = (Boolean) evaluate(expression.get(1), variables);
                return evaluate(expression.get(holds ? 2 : 3), variables);
            }
            Object[] arguments = new Object[expression.size() - 1];
            for (int i = 0; i < arguments.length; i++) {
                arguments[i] = evaluate(expression.get(i + 1), variables);
            }
            return call(name, arguments);
        }
        if (expression.isTextual() && expression.asText().startsWith("$")) {
            String name = expression.asText().substring(1);
            if (!variables.containsKey(name)) {
                throw new MalformedScenario("unknown variable $" + name);
            }
            return variables.get(name);
        }
        return literal(expression);
    }

    /** Whether `$name` stands anywhere in the expression. */
    static boolean mentions(JsonNode expression, String name) {
        if (expression.isArray()) {
            for (JsonNode part : expression) {
                if (mentions(part, name)) {
                    return true;
                }
            }
        }
        return expression.isTextual() && expression.asText().equals("$" + name);
    }

    static String text(Object value) {
        if (value instanceof Windowed<?> w) {
            return "[" + text(w.key()) + "@" + w.window().start() + "/" + w.window().end() + "]";
        }
        return String.valueOf(value);
    }

    private static Object literal(JsonNode node) {
        if (node.isNull()) {
            return null;
        }
        if (node.isBoolean()) {
            return node.booleanValue();
        }
        if (node.isIntegralNumber()) {
            return node.longValue();
        }
        if (node.isNumber()) {
            return node.doubleValue();
        }
        if (node.isTextual()) {
            return node.asText();
        }
        throw new MalformedScenario("not an expression: " + node);
    }

    private static Object call(String name, Object[] a) {
        return switch (name) {
            case "concat" -> concat(a);
            case "str" -> a[0] == null ? null : text(a[0]);
            case "upper", "lower", "first_char", "last_char", "tail", "len", "before", "after", "parse_long",
                "contains", "starts_with", "split_words" -> textCall(name, a);
            case "sum", "sub", "mul", "mod", "min", "max", "int", "double", "is_even" -> numberCall(name, a);
            case "is_null" -> a[0] == null;
            case "not" -> !(Boolean) a[0];
            case "and" -> List.of(a).stream().allMatch(p -> (Boolean) p);
            case "or" -> List.of(a).stream().anyMatch(p -> (Boolean) p);
            case "eq" -> equal(a[0], a[1]);
            case "lt" -> a[0] != null && a[1] != null && compare(a[0], a[1]) < 0;
            case "gt" -> a[0] != null && a[1] != null && compare(a[0], a[1]) > 0;
            case "list" -> new ArrayList<>(java.util.Arrays.asList(a));
            case "pair" -> new KeyValue<>(a[0], a[1]);
            case "window_key" -> a[0] == null ? null : ((Windowed<?>) a[0]).key();
            case "window_start" -> a[0] == null ? null : ((Windowed<?>) a[0]).window().start();
            case "window_end" -> a[0] == null ? null : ((Windowed<?>) a[0]).window().end();
            case "fail" -> throw new IllegalStateException("boom " + text(a.length == 0 ? null : a[0]));
            default -> throw new MalformedScenario("unknown function " + name);
        };
    }

    private static String concat(Object[] parts) {
        StringBuilder joined = new StringBuilder();
        for (Object part : parts) {
            joined.append(text(part));
        }
        return joined.toString();
    }

    private static Object textCall(String name, Object[] a) {
        String s = (String) a[0];
        if (s == null) {
            return switch (name) {
                case "len" -> 0L;
                case "contains", "starts_with" -> false;
                case "split_words" -> new ArrayList<>();
                default -> null;
            };
        }
        return switch (name) {
            case "upper" -> s.toUpperCase(java.util.Locale.ROOT);
            case "lower" -> s.toLowerCase(java.util.Locale.ROOT);
            case "first_char" -> s.substring(0, Math.min(1, s.length()));
            case "last_char" -> s.substring(Math.max(0, s.length() - 1));
            case "tail" -> s.substring(Math.max(0, s.length() - ((Number) a[1]).intValue()));
            case "len" -> (long) s.length();
            case "before" -> s.contains((String) a[1]) ? s.substring(0, s.indexOf((String) a[1])) : s;
            case "after" -> s.contains((String) a[1])
                ? s.substring(s.indexOf((String) a[1]) + ((String) a[1]).length()) : null;
            case "parse_long" -> s.matches("-?[0-9]{1,15}") ? Long.valueOf(s) : null;
            case "contains" -> s.contains((String) a[1]);
            case "starts_with" -> s.startsWith((String) a[1]);
            case "split_words" -> words(s);
            default -> throw new MalformedScenario("unknown function " + name);
        };
    }

    private static List<Object> words(String s) {
        List<Object> words = new ArrayList<>();
        for (String word : s.split(" ")) {
            if (!word.isEmpty()) {
                words.add(word);
            }
        }
        return words;
    }

    private static Object numberCall(String name, Object[] a) {
        return switch (name) {
            case "sum" -> sum(a);
            case "sub" -> isDouble(a) ? (Object) (asDouble(a[0]) - asDouble(a[1])) : (Object) (asLong(a[0]) - asLong(a[1]));
            case "mul" -> isDouble(a) ? (Object) (asDouble(a[0]) * asDouble(a[1])) : (Object) (asLong(a[0]) * asLong(a[1]));
            case "mod" -> Math.floorMod(asLong(a[0]), asLong(a[1]));
            case "min" -> a[0] == null ? a[1] : a[1] == null ? a[0] : compare(a[0], a[1]) <= 0 ? a[0] : a[1];
            case "max" -> a[0] == null ? a[1] : a[1] == null ? a[0] : compare(a[0], a[1]) >= 0 ? a[0] : a[1];
            case "int" -> a[0] == null ? null : (Object) ((Number) a[0]).intValue();
            case "double" -> a[0] == null ? null : (Object) ((Number) a[0]).doubleValue();
            default -> a[0] != null && asLong(a[0]) % 2 == 0;
        };
    }

    private static Object sum(Object[] terms) {
        if (isDouble(terms)) {
            double total = 0;
            for (Object term : terms) {
                total += asDouble(term);
            }
            return total;
        }
        long total = 0;
        for (Object term : terms) {
            total += asLong(term);
        }
        return total;
    }

    private static boolean isDouble(Object[] values) {
        for (Object value : values) {
            if (value instanceof Double) {
                return true;
            }
        }
        return false;
    }

    private static long asLong(Object value) {
        return value == null ? 0 : ((Number) value).longValue();
    }

    private static double asDouble(Object value) {
        return value == null ? 0 : ((Number) value).doubleValue();
    }

    private static boolean equal(Object x, Object y) {
        return x instanceof Number && y instanceof Number ? compare(x, y) == 0 : Objects.equals(x, y);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static int compare(Object x, Object y) {
        if (x instanceof Number && y instanceof Number) {
            return x instanceof Double || y instanceof Double
                ? Double.compare(asDouble(x), asDouble(y)) : Long.compare(asLong(x), asLong(y));
        }
        return ((Comparable) x).compareTo(y);
    }
}
